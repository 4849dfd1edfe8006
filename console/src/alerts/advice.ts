import { type AlertDelivery, AlertDeliveryState } from "../../../gen/chorus/admin/v1/alerts_pb.js";

/** What became of a test, and what to do about it. */
export interface Advice {
  readonly tone: "info" | "warn" | "bad";
  readonly title: string;
  /** What the receiver answered, and what to do. */
  readonly text: string;
}

/**
 * Says how a test ended so far.
 * @param test undefined until it is in the list
 * @param isMail whether it is a mail, and else a call of a webhook
 */
export function adviceOf(test: AlertDelivery | undefined, isMail: boolean): Advice {
  const { state, error = "", responseStatus = 0 } = test ?? {};
  if (state === AlertDeliveryState.DELIVERED) {
    if (error) return { tone: "warn", title: "The test reached some addresses", text: `${error} Correct the others.` };
    if (isMail) return { tone: "info", title: "The test is sent", text: MAIL_TAKEN };
    return { tone: "info", title: "The test has arrived", text: taken(responseStatus) };
  }
  if (error === "") return { tone: "info", title: "Sending a test", text: "" };
  const todo = isMail ? mailAdvice(responseStatus) : webhookAdvice(responseStatus, error);
  return { tone: "bad", title: "The test has not arrived", text: `${error} ${todo}` };
}

const MAIL_TAKEN = "The mail server has taken it. If the mail is not there in a minute, look into the folder for spam.";

function taken(status: number): string {
  return `The webhook answered ${status}. Look for the test in your program or channel.`;
}

/** @param status the reply code of SMTP; 0: there was none */
function mailAdvice(status: number): string {
  // 530 to 538 are about the sign-in of the service at the mail server.
  if (status === 0 || (status >= 530 && status < 540)) return "Ask the operator to check CHORUS_SMTP_URL.";
  if (status >= 500) return "Check the addresses.";
  return "Wait for the next attempt.";
}

/** @param status of HTTP; 0: there was none */
function webhookAdvice(status: number, error: string): string {
  if (status >= 500) return "Look into the log of the program behind the address.";
  if (status === 429) return "Wait for the next attempt.";
  if (status === 401 || status === 403) return "Check the token in the address.";
  if (status >= 400) return "Check the address and the format.";
  if (status >= 300) return "Redirects are not followed: set the address to which it leads.";
  if (error.includes("not public"))
    return "Use a public address, or ask the operator to allow it: CHORUS_WEBHOOK_HOSTS.";
  return "Check the address, and that it can be reached from the service.";
}
