import { isMailTarget } from "../contract/mail-address.ts";

export interface Attempt {
  /** Identifier of the event; the same for each attempt. */
  id: string;
  /** Address of a webhook, or `mailto:` with addresses. */
  url: string;
  /** Prefix `whsec_`. */
  secret: string;
  /** The event, as JSON. */
  body: string;
  /** How the event is written for a webhook. */
  format: "event" | "slack";
}

/** How an attempt ended. */
export interface AttemptEnd {
  /** Status of the answer, of HTTP or SMTP; absent if there was none. */
  status?: number;
  /** What went wrong. */
  error?: string;
  /** Whether the event has arrived. If not, it is sent again. Default: whether there is no error. */
  isDelivered?: boolean;
  /** Whether the end of this service has cut the attempt off. It does not count then. */
  isCut?: boolean;
}

export interface Sender {
  /** @throws Failure `invalid_request` with the field for an address to which nothing is sent */
  checkUrl(field: string, url: string): void;
  /** Sends an event. Never rejects. */
  send(attempt: Attempt): Promise<AttemptEnd>;
  /** Ends the attempts under way. */
  close(): Promise<void>;
}

/** Sends each event by the sender that its address needs. */
export function createSender(webhooks: Sender, mail: Sender): Sender {
  const senderOf = (url: string) => (isMailTarget(url) ? mail : webhooks);
  return {
    checkUrl: (field, url) => senderOf(url).checkUrl(field, url),
    send: (attempt) => senderOf(attempt.url).send(attempt),
    async close() {
      await Promise.all([webhooks.close(), mail.close()]);
    },
  };
}
