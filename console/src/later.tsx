import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { FailureNote } from "./parts/failure-note.tsx";
import { Skeleton } from "./parts/skeleton.tsx";

/**
 * A page, or a part of one, whose code is loaded when it is first shown.
 * @param address path of the page. If the browser opens it, the code is loaded at once, while the session is looked up;
 * undefined for a part
 */
export function later(address: string | undefined, load: () => Promise<FunctionComponent>): FunctionComponent {
  let loaded: FunctionComponent | undefined;
  const isOpen = address !== undefined && withoutSlash(location.pathname) === withoutSlash(address);
  const early = isOpen ? load() : undefined;
  // An error is shown with the page.
  early?.then(
    (Page) => (loaded = Page),
    () => undefined,
  );
  return function Later() {
    const [state, setState] = useState<{ Page: FunctionComponent | undefined; error?: unknown }>({ Page: loaded });
    const start = () => {
      (early ?? load()).then(
        (Page) => {
          loaded = Page;
          setState({ Page });
        },
        (error: unknown) => setState({ Page: undefined, error }),
      );
    };
    useEffect(() => {
      if (!state.Page) start();
    }, []);
    const { Page, error } = state;
    if (Page) return <Page />;
    if (error !== undefined) return <FailureNote error={error} retry={() => location.reload()} />;
    return (
      <div aria-busy="true">
        <Skeleton lines={6} />
      </div>
    );
  };
}

function withoutSlash(path: string): string {
  return path.replace(/\/+$/, "");
}
