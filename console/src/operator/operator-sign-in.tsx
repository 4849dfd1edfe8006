import { useEffect, useRef, useState } from "preact/hooks";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { Note } from "../parts/note.tsx";
import { SignInError } from "../session/session.ts";
import { Mark } from "../shell/mark.tsx";
import { ThemeSwitch } from "../shell/theme-switch.tsx";
import { type OperatorSession, signIn } from "./session.ts";

/** Asks for the operator token. @param notice why the form is shown, in a sentence; may be empty */
export function OperatorSignIn({ notice, enter }: { notice: string; enter: (session: OperatorSession) => void }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Operator · Chorus";
    field.current?.focus();
  }, []);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      enter(await signIn(token.trim()));
    } catch (failure) {
      setError(failure);
      setBusy(false);
      field.current?.select();
    }
  };
  const isWrong = error instanceof SignInError && (error.status === 401 || error.status === 422);

  return (
    <main class="sign-in">
      <p class="wordmark">
        <Mark /> Chorus
      </p>
      {notice && <Note role="status">{notice}</Note>}
      <div class="card">
        <h1>Sign in as operator</h1>
        <form class="form" onSubmit={submit}>
          <Field id="token" label="Operator token" help={HELP}>
            <input
              id="token"
              ref={field}
              type="password"
              autocomplete="current-password"
              spellcheck={false}
              placeholder="op_…"
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
              aria-describedby="token-help"
              {...(isWrong ? { "aria-invalid": "true" as const } : {})}
            />
          </Field>
          {isWrong && (
            <Note tone="bad" role="alert">
              This token is not valid. It may be mistyped or replaced by a newer one.
            </Note>
          )}
          {error !== undefined && !isWrong && <FailureNote error={error} />}
          <button class="primary" type="submit" disabled={busy}>
            {busy ? "Signing in…" : "Sign in"}
          </button>
        </form>
      </div>
      <ThemeSwitch />
    </main>
  );
}

const HELP = (
  <>
    The first start prints it, and stores it in <code>operator_token</code> of its data folder. A lost one is replaced
    with <code>chorus operators replace-token</code>.
  </>
);
