import type { Route, Verbs } from "../call/route.ts";
import { pathPattern } from "../rest/path.ts";

/** The routes of paths and of templates such as `/v1/models/{model}`. */
export class RouteTable {
  readonly #byPath = new Map<string, Map<string, Route>>();
  readonly #templates: { readonly pattern: RegExp; readonly verbs: Verbs }[] = [];

  add(path: string, verb: string, route: Route): void {
    let verbs = this.#byPath.get(path);
    if (!verbs) {
      verbs = new Map();
      this.#byPath.set(path, verbs);
      if (path.includes("{")) this.#templates.push({ pattern: pathPattern(path), verbs });
    }
    verbs.set(verb, route);
  }

  /** @param path of a request, or a template that was added */
  find(path: string): Verbs | undefined {
    return this.#byPath.get(path) ?? this.#templates.find(({ pattern }) => pattern.test(path))?.verbs;
  }
}
