import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { FailureNote } from "./parts/failure-note.tsx";
import { Skeleton } from "./parts/skeleton.tsx";

/** A component whose code is loaded when it is first shown. */
export function later(load: () => Promise<FunctionComponent>): FunctionComponent {
  let loaded: FunctionComponent | undefined;
  return function Later() {
    const [state, setState] = useState<{ Page: FunctionComponent | undefined; error?: unknown }>({ Page: loaded });
    const start = () => {
      load().then(
        (Page) => {
          loaded = Page;
          setState({ Page });
        },
        (error: unknown) => setState({ Page: undefined, error }),
      );
    };
    useEffect(() => {
      if (!loaded) start();
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
