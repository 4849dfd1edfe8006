/** One step of a path to a member: `.name`, or `["any name"]`. */
export function memberStep(name: string): string {
  return /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? `.${name}` : `[${quoted(name)}]`;
}

/** A name for a message: in quotes, shortened to 64 characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}
