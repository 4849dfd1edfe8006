/**
 * Addresses that stand in headers, in SMTP and after `mailto:` as they are: ASCII without quotes, comments, spaces and
 * what addresses of the web escape.
 */
const ADDRESS = /^[\w.!$'*+=^`{|}~-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const MAX_ADDRESS = 254;

const SCHEME = "mailto:";
/** Most recipients of the mails of an alert. */
export const MAX_RECIPIENTS = 5;

/** Whether a text is an e-mail address that this service writes to. */
export function isMailAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS && ADDRESS.test(text);
}

/** The part of an e-mail address behind the `@`, in lower case. */
export function mailDomain(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1).toLowerCase();
}

/** Whether the address of an alert stands for e-mail, with valid addresses or not. */
export function isMailTarget(url: string): boolean {
  return url.startsWith(SCHEME);
}

/** The addresses of `mailto:ann@example.com,bob@example.com`. @returns undefined if it is not written like that */
export function recipientsOf(url: string): readonly string[] | undefined {
  if (!isMailTarget(url) || url.length > SCHEME.length + MAX_RECIPIENTS * (MAX_ADDRESS + 1)) return undefined;
  const addresses = url.slice(SCHEME.length).split(",");
  return addresses.length <= MAX_RECIPIENTS && addresses.every(isMailAddress) ? addresses : undefined;
}
