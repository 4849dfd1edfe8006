/** The caller has closed the connection or stopped reading, so no response is sent. */
export class CallerGone extends Error {
  override name = "CallerGone";
}

/** The service has aborted the work on a request. The caller keeps the delivered text, which is not charged. */
export class CutShort extends Error {
  override name = "CutShort";
  readonly why: "deadline" | "drain";

  constructor(why: "deadline" | "drain") {
    super(why);
    this.why = why;
  }
}
