/** One step of a path to a member: `.name`, or `["any name"]`. */
export function memberStep(name: string): string {
  return /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? `.${name}` : `[${quoted(name)}]`;
}

/** A name as a message shows it: in quotes, cut to a readable length. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}
