import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { Note } from "../parts/note.tsx";
import { Mark } from "../shell/mark.tsx";
import { ThemeSwitch } from "../shell/theme-switch.tsx";
import { ProviderSignIn } from "./provider-sign-in.tsx";
import { type SessionClient, SignInError, secretOfLink } from "./session-client.ts";

/** What the form says. */
export interface SignInText {
  /** Title of the browser's tab. */
  readonly title: string;
  readonly heading: string;
  /** Name of the token, what it begins with, and where it comes from. */
  readonly label: string;
  readonly placeholder: string;
  readonly help: ComponentChildren;
  /** Shown for a token that is not valid. */
  readonly wrong: string;
}

interface Props<T> {
  client: SessionClient<T>;
  text: SignInText;
  /** Why the form is shown, in a sentence; may be empty. */
  notice: string;
  enter: (session: T) => void;
}

/** Asks for the token that opens a session. */
export function SignIn<T>({ client, text, notice, enter }: Props<T>) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = text.title;
    field.current?.focus();
  }, [text]);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const entered = token.trim();
      enter(await client.signIn(secretOfLink(entered) ?? entered));
    } catch (failure) {
      setError(failure);
      setBusy(false);
      field.current?.select();
    }
  };

  const isWrong = error instanceof SignInError && error.isToken;

  return (
    <main class="sign-in">
      <p class="wordmark">
        <Mark /> Chorus
      </p>
      {notice && <Note role="status">{notice}</Note>}
      <div class="card">
        <h1>{text.heading}</h1>
        <ProviderSignIn />
        <form class="form" onSubmit={submit}>
          <Field id="token" label={text.label} help={text.help}>
            <input
              id="token"
              ref={field}
              type="password"
              autocomplete="current-password"
              spellcheck={false}
              placeholder={text.placeholder}
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
              aria-describedby="token-help"
              {...(isWrong ? { "aria-invalid": "true" as const } : {})}
            />
          </Field>
          {isWrong && (
            <Note tone="bad" role="alert">
              {text.wrong}
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
