/** Where an invitation waits in this tab while a person signs in at the provider. */
const KEPT = "chorus-invitation";

/** The secret of an invitation; undefined for any other text. */
export function invitationOf(text: string): string | undefined {
  return /#invitation=(in_\w+)$/.exec(text)?.[1];
}

/** Moves the invitation of the address into the tab, so that neither the address nor the history keeps it. */
export function keepInvitation(): void {
  const secret = invitationOf(location.hash);
  if (!secret) return;
  sessionStorage.setItem(KEPT, secret);
  history.replaceState(history.state, "", location.pathname);
}

/** Takes the invitation out of the tab, and its mark out of the address, so that it is tried once. */
export function takeInvitation(): string | undefined {
  const secret = sessionStorage.getItem(KEPT) ?? undefined;
  sessionStorage.removeItem(KEPT);
  if (location.search === "?invited") history.replaceState(history.state, "", location.pathname);
  return secret;
}

/** What the sign-in says while an invitation waits; empty without one. */
export function invited(): string {
  return sessionStorage.getItem(KEPT) ? "You are invited to a workspace. Sign in through the provider to join it." : "";
}
