import { useEffect, useRef, useState } from "preact/hooks";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { Note } from "../parts/note.tsx";
import { Mark } from "../shell/mark.tsx";
import { ThemeSwitch } from "../shell/theme-switch.tsx";
import { type Session, SignInError, signIn } from "./session.ts";

/** Asks for the owner token. @param notice why the form is shown, in a sentence; may be empty */
export function SignIn({ notice, enter }: { notice: string; enter: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Chorus";
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

  return (
    <main class="sign-in">
      <p class="wordmark">
        <Mark /> Chorus
      </p>
      {notice && <Note role="status">{notice}</Note>}
      <div class="card">
        <h1>Sign in to your workspace</h1>
        <form class="form" onSubmit={submit}>
          <Field id="token" label="Owner token" help={HELP}>
            <input
              id="token"
              ref={field}
              type="password"
              autocomplete="current-password"
              spellcheck={false}
              placeholder="ow_…"
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
              aria-describedby="token-help"
              {...(isWrong(error) ? { "aria-invalid": "true" as const } : {})}
            />
          </Field>
          {error !== undefined &&
            (isWrong(error) ? (
              <Note tone="bad" role="alert">
                This token is not valid. It may be mistyped, replaced by a newer one, or expired.
              </Note>
            ) : (
              <FailureNote error={error} />
            ))}
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
    The operator of this service creates it with <code>chorus owners create</code>. An API key (<code>ck_…</code>) does
    not work here.
  </>
);

function isWrong(error: unknown): boolean {
  return error instanceof SignInError && (error.status === 401 || error.status === 422);
}
