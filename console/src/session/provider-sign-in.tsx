import { useEffect, useState } from "preact/hooks";
import { invited } from "./invitation.ts";

/** Why a sign-in failed, by the code with which the service leads back to the page. */
const FAILED: Readonly<Record<string, string>> = {
  refused: "The identity provider did not confirm the sign-in, or it took too long. Try again.",
  no_provider:
    "The identity provider does not answer as expected, so nobody can sign in through it now. Who is signed in stays " +
    "signed in. Try again later, or tell the operator of this service.",
  too_many: "There were too many attempts to sign in from here. Wait a minute, then try again.",
  busy: "The service is busy. Try again.",
  not_operator: "You are no operator of this service. Ask its operators, or sign in with the operator token.",
};

/** Takes the reason of a failed sign-in out of the address. @returns a sentence; empty without one */
export function takeNotice(): string {
  const code = /^#sign-in-failed=(\w+)$/.exec(location.hash)?.[1];
  if (code === undefined) return "";
  history.replaceState(history.state, "", location.pathname + location.search);
  return FAILED[code] ?? FAILED.busy ?? "";
}

/** Leads to the provider through which people sign in, and from there back to this page. Nothing without a provider. */
export function ProviderSignIn() {
  const [provider, setProvider] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    fetch("/console/sign-in/provider", { signal: leaving.signal })
      .then((response) => (response.ok ? response.json() : {}))
      .then(
        (body: { provider?: string }) => setProvider(body.provider ?? ""),
        () => undefined,
      );
    return () => leaving.abort();
  }, []);
  if (!provider) return null;
  // Without the mark, an operator without a workspace would be led to the operator's side.
  const to = encodeURIComponent(location.pathname + (invited() ? "?invited" : location.search));
  return (
    <>
      <a class="button" href={`/console/sign-in?to=${to}`}>
        Sign in with {provider}
      </a>
      <p class="soft small or">or with a token</p>
    </>
  );
}
