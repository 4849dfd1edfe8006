import type { ForceDefects, UseDefects } from "./caps.ts";

/** Defects that tests plant, to show that the simulation finds them. */
export interface Defects extends CapDefects {
  /** Reserves what other replicas have reserved. */
  ignoresOthers?: boolean;
  /** Posts a settlement again. */
  postsTwice?: boolean;
  /** Accepts the settlements of a grant that was ended. */
  acceptsEnded?: boolean;
  /** Refuses without calling headroom back. */
  neverCallsBack?: boolean;
  /** Executes an exchange again that is repeated. */
  executesAgain?: boolean;
  /** Does not see the keys of requests that were admitted in the same exchange, if it opens the grant. */
  missesNewKeys?: boolean;
  /** Charges an answer of a journal although another request has used its key. */
  chargesKeysAgain?: boolean;
  /** Drops the response of a request when a late copy of an exchange asks for the request again. */
  dropsResponse?: boolean;
  /** Leaves the key of a request in use that was refused because an answer was lost. */
  freesNoKey?: boolean;
  /** Continues a grant that its replica does not know. */
  keepsUnknown?: boolean;
  /** Does not take the key of an answer of a journal again that a crash has lost. */
  forgetsKeys?: boolean;
  /** Ends a grant without posting what waits in the log. */
  dropsLog?: boolean;
  /** Leaves in the log what it has posted. */
  keepsLog?: boolean;
  /** Appends to the log of a grant that has ended. */
  appendsToEnded?: boolean;
  /** Continues a grant whose last changes a crash has lost. */
  forgetsCrash?: boolean;
}

/** Of them, those in the rules of caps. */
export interface CapDefects extends ForceDefects, UseDefects {
  /** Checks the first subject of a request alone. */
  checksFirstSubject?: boolean;
  /** Lowers the effort without a look at the caps that refuse. */
  stopsAtLow?: boolean;
  /** Does not see what requests hold that were admitted in the same exchange, if it opens the grant. */
  missesNewHolds?: boolean;
  /** Counts a request that runs, and not what it holds. */
  takesNoHold?: boolean;
  /** Counts a request for its first subject although a cap of another one refuses it. */
  countsRefused?: boolean;
  /** Does not count what a request is charged. */
  spendsNothing?: boolean;
  /** Still counts what requests hold whose grant has ended. */
  keepsHoldsOfEnded?: boolean;
  /** Does not see what replicas have reserved of a subject. */
  ignoresSubjects?: boolean;
  /** Keeps what is reserved of a subject when its grant ends. */
  keepsSubjectsOfEnded?: boolean;
  /** Refuses a subject without calling headroom back. */
  callsNoSubjects?: boolean;
  /** Lets headroom of a subject outlast the raise of its cap. */
  outlastsRaises?: boolean;
  /** Does not count the requests of a subject that a replica has admitted by itself. */
  countsNoShared?: boolean;
}
