/** A response of the service other than a session. */
export class SignInError extends Error {
  readonly status: number;
  /** Seconds after which to try again; undefined if waiting does not help. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS: number | undefined) {
    super(message);
    this.name = "SignInError";
    this.status = status;
    this.retryAfterS = retryAfterS;
  }

  /** Whether the token is not valid. */
  get isToken(): boolean {
    return this.status === 401 || this.status === 422;
  }
}

/** Opens and ends the sessions of one side of the console. The cookie of a session is not accessible to scripts. */
export class SessionClient<T> {
  readonly #address: string;
  readonly #read: (body: Record<string, string>) => T;
  readonly #ends = new EventTarget();

  /**
   * @param address path of the session on the service
   * @param read makes the session from the body of a response
   */
  constructor(address: string, read: (body: Record<string, string>) => T) {
    this.#address = address;
    this.#read = read;
  }

  /** The session of this browser; undefined without one. @throws SignInError; TypeError if the connection fails */
  async current(): Promise<T | undefined> {
    const response = await fetch(this.#address, { cache: "no-store" });
    return response.status === 401 ? undefined : this.#sessionOf(response);
  }

  /** Opens a session. @throws SignInError, TypeError */
  async signIn(token: string): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.#sessionOf(await fetch(this.#address, { method: "POST", headers, body: JSON.stringify({ token }) }));
  }

  /** Ends the session in all tabs. @throws SignInError, TypeError */
  async signOut(): Promise<void> {
    const response = await fetch(this.#address, { method: "DELETE" });
    if (!response.ok) throw await refusal(response);
  }

  /** Notifies the console that the session has expired. */
  end(): void {
    this.#ends.dispatchEvent(new Event("end"));
  }

  /** Calls the listener when the session has expired. @returns a function that removes the listener */
  onEnd(listener: () => void): () => void {
    this.#ends.addEventListener("end", listener);
    return () => this.#ends.removeEventListener("end", listener);
  }

  async #sessionOf(response: Response): Promise<T> {
    if (!response.ok) throw await refusal(response);
    return this.#read(await response.json());
  }
}

async function refusal(response: Response): Promise<SignInError> {
  const body = await response.json().catch(() => undefined);
  const message = typeof body?.message === "string" ? body.message : "The service did not answer as expected.";
  const wait = Number(response.headers.get("retry-after"));
  return new SignInError(response.status, message, wait > 0 ? wait : undefined);
}

/** The secret of a sign-in link; undefined for any other text. */
export function secretOfLink(text: string): string | undefined {
  return /#sign-in=(.+)$/.exec(text)?.[1];
}
