import { useState } from "preact/hooks";

/** Runs the action of a form or a dialog. Says whether it runs, and how it failed, until the next one or `forget`. */
export function useAction() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  /** @param event of a form, which then loads no page */
  const run = async (action: () => Promise<unknown>, event?: Event) => {
    event?.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await action();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return { busy, error, run, forget: () => setError(undefined) };
}
