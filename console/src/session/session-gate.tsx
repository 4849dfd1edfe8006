import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { FailureNote } from "../parts/failure-note.tsx";
import { invitationOf, invited } from "./invitation.ts";
import { takeNotice } from "./provider-sign-in.tsx";
import { type SessionClient, secretOfLink } from "./session-client.ts";
import { SignIn, type SignInText } from "./sign-in.tsx";

interface Props<T> {
  client: SessionClient<T>;
  /** Finds the session of this browser. */
  find: () => Promise<T | undefined>;
  text: SignInText;
  /** Why the form is shown after the session has expired. */
  ended: string;
  /** The page of a session. `leave` signs out. */
  children: (session: T, leave: () => void) => ComponentChildren;
}

type State<T> =
  | { at: "start" }
  | { at: "failed"; error: unknown }
  | { at: "out"; notice: string }
  | { at: "in"; session: T };

/** Shows the sign-in form, or the page of the session. */
export function SessionGate<T>({ client, find, text, ended, children }: Props<T>) {
  const [state, setState] = useState<State<T>>({ at: "start" });

  const start = () => {
    const notice = takeNotice();
    find().then(
      (session) => setState(session ? { at: "in", session } : { at: "out", notice: notice || invited() }),
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  useEffect(start, []);
  // A sign-in link that is opened in this tab changes only the fragment of the address, and loads no page.
  useEffect(() => {
    const open = () => (secretOfLink(location.hash) || invitationOf(location.hash)) && start();
    addEventListener("hashchange", open);
    return () => removeEventListener("hashchange", open);
  }, []);
  const expire = () => setState((now) => (now.at === "in" ? { at: "out", notice: ended } : now));
  useEffect(() => client.onEnd(expire), []);

  if (state.at === "start") return <p class="starting">Opening the console…</p>;
  if (state.at === "failed") {
    return (
      <main class="sign-in">
        <FailureNote error={state.error} retry={start} />
      </main>
    );
  }
  if (state.at === "out") {
    const enter = (session: T) => {
      // What was kept may be of another workspace.
      history.replaceState(null, "");
      setState({ at: "in", session });
    };
    return <SignIn client={client} text={text} notice={state.notice} enter={enter} />;
  }
  const leave = () => {
    client.signOut().then(
      (address) => {
        if (address) location.assign(address);
        else setState({ at: "out", notice: "You have signed out." });
      },
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  return <>{children(state.session, leave)}</>;
}
