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

/** What is said of a token that opens something else, by what it begins with. */
const OTHERS: Readonly<Record<string, ComponentChildren>> = {
  ck_: "This is an API key: it calls the service, and opens no console.",
  op_: (
    <>
      This is an operator token. It opens the <a href="/console/operator">operator’s side</a>.
    </>
  ),
  ow_: (
    <>
      This is an owner token. It opens the <a href="/console">console of its workspace</a>.
    </>
  ),
};

function wrongOf(token: string, { placeholder, wrong }: SignInText): ComponentChildren {
  const kind = token.slice(0, 3);
  return placeholder.startsWith(kind) ? wrong : (OTHERS[kind] ?? wrong);
}

/** Asks for the token that opens a session. */
export function SignIn<T>({ client, text, notice, enter }: Props<T>) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [wrong, setWrong] = useState<ComponentChildren>();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = text.title;
    field.current?.focus();
  }, [text]);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    setWrong(undefined);
    const entered = token.trim();
    try {
      enter(await client.signIn(secretOfLink(entered) ?? entered));
    } catch (failure) {
      if (failure instanceof SignInError && failure.isToken) setWrong(wrongOf(entered, text));
      else setError(failure);
      setBusy(false);
      field.current?.focus();
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
        <h1>{text.heading}</h1>
        <ProviderSignIn />
        <form class="form" onSubmit={submit}>
          <UserName name={text.label} />
          <Field id="token" label={text.label} help={text.help} wrong={wrong}>
            <input
              id="token"
              name="token"
              ref={field}
              type="password"
              autocomplete="current-password"
              spellcheck={false}
              placeholder={text.placeholder}
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
              aria-describedby={wrong ? "token-wrong token-help" : "token-help"}
              {...(wrong ? { "aria-invalid": "true" as const } : {})}
            />
          </Field>
          {error !== undefined && <FailureNote error={error} />}
          <button class="primary" type="submit" disabled={busy}>
            {busy ? "Signing in…" : "Sign in"}
          </button>
        </form>
      </div>
      <ThemeSwitch />
    </main>
  );
}

/** An input that nobody sees: password managers keep the tokens of both sides apart by it. */
function UserName({ name }: { name: string }) {
  const hidden = { class: "hidden", tabIndex: -1, "aria-hidden": true, readOnly: true };
  return <input name="username" autocomplete="username" value={name} {...hidden} />;
}
