import { isIP } from "node:net";
import { isMailAddress } from "../contract/mail-address.ts";
import { ConfigError, type Env } from "./config-error.ts";
import { hostNames } from "./values.ts";

/** The server that takes e-mail, and what is sent through it. */
export interface MailConfig {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whether TLS begins with the connection. If not, it begins with STARTTLS where the server offers that. */
  readonly secure: boolean;
  /** Undefined: the service does not sign in. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /** Address of the sender. */
  readonly from: string;
  /** Domains of recipients, in lower case; a leading dot stands for all names below. Empty: any. */
  readonly domains: readonly string[];
}

/**
 * Reads the variables CHORUS_SMTP_URL and CHORUS_MAIL_….
 * @returns undefined without CHORUS_SMTP_URL
 * @throws ConfigError that never quotes CHORUS_SMTP_URL, which may contain a password
 */
export function readMail(env: Env): MailConfig | undefined {
  const text = env.CHORUS_SMTP_URL;
  if (!text) {
    const other = ["CHORUS_MAIL_FROM", "CHORUS_MAIL_DOMAINS"].find((name) => env[name]);
    if (other) throw new ConfigError(`${other} needs CHORUS_SMTP_URL. Set that, or unset ${other}.`);
    return undefined;
  }
  const from = env.CHORUS_MAIL_FROM ?? "";
  if (!isMailAddress(from)) {
    throw new ConfigError(
      `CHORUS_MAIL_FROM must be the e-mail address of the sender beside CHORUS_SMTP_URL, such as chorus@example.com, ` +
        `but is "${from}".`,
    );
  }
  return { ...readServer(text), from, domains: hostNames(env, "CHORUS_MAIL_DOMAINS") };
}

function readServer(text: string): Pick<MailConfig, "host" | "port" | "secure" | "login"> {
  const url = URL.parse(text);
  const host = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  const isHost = isIP(host) !== 0 || /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/i.test(host);
  const login = url ? loginOf(url) : undefined;
  const isBare = url && /^smtps?:$/.test(url.protocol) && /^\/?$/.test(url.pathname + url.search + url.hash);
  if (!isBare || !isHost || !login) {
    throw new ConfigError(
      "CHORUS_SMTP_URL must be the address of a mail server, such as smtps://user:password@mail.example.com:465, " +
        "with %40 for an @ in the name or the password. Correct it or unset it.",
    );
  }
  const secure = url.protocol === "smtps:";
  return { host, port: Number(url.port) || (secure ? 465 : 587), secure, login: login.user ? login : undefined };
}

/** @returns undefined if only one of both is there, or an escape is wrong */
function loginOf({ username, password }: URL): { user: string; password: string } | undefined {
  if ((username === "") !== (password === "")) return undefined;
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}
