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

/** A workspace of a person. */
export interface Membership {
  readonly id: string;
  readonly name: string;
  readonly role: string;
}

/** The body of a response with a session, of either side. */
export interface SessionBody {
  readonly expires_at?: string;
  readonly operator?: string;
  readonly workspace?: string;
  readonly workspace_id?: string;
  /** Name of the provider through which people sign in. */
  readonly provider?: string;
  readonly person?: { readonly id: string; readonly name: string; readonly email: string; readonly operator: boolean };
  readonly role?: string;
  readonly workspaces?: readonly Membership[];
}

/** Opens and ends the sessions of one side of the console. The cookie of a session is not accessible to scripts. */
export class SessionClient<T> {
  readonly #address: string;
  readonly #read: (body: SessionBody) => T;
  readonly #ends = new EventTarget();

  /**
   * @param address path of the session on the service
   * @param read makes the session from the body of a response
   */
  constructor(address: string, read: (body: SessionBody) => T) {
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
    return this.#send("POST", { token });
  }

  /** Changes the workspace of a person's session. @throws SignInError, TypeError */
  async choose(workspace: string): Promise<T> {
    return this.#send("PUT", { workspace });
  }

  /**
   * Ends the session in all tabs.
   * @returns where the browser signs out at the provider, too; undefined: nowhere
   * @throws SignInError, TypeError
   */
  async signOut(): Promise<string | undefined> {
    const response = await fetch(this.#address, { method: "DELETE" });
    if (!response.ok) throw await refusal(response);
    return response.status === 200 ? (await response.json()).sign_out_url : undefined;
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

  async #send(method: string, body: object): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.#sessionOf(await fetch(this.#address, { method, headers, body: JSON.stringify(body) }));
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
