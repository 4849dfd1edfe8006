import type { ComponentChildren } from "preact";
import { go } from "../route.ts";

interface Props {
  /** Address within the console. */
  to: string;
  /** Whether it links to the current page. */
  current?: boolean;
  class?: string;
  /** Called when it opens. */
  followed?: () => void;
  children: ComponentChildren;
}

/** A link to another page of the console. It opens without reloading the console. */
export function Link({ to, current = false, followed, children, ...rest }: Props) {
  const follow = (event: MouseEvent) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    go(to);
    followed?.();
  };
  return (
    <a href={to} onClick={follow} {...(current ? { "aria-current": "page" as const } : {})} {...rest}>
      {children}
    </a>
  );
}
