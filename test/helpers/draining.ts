import { until } from "./until.ts";

/**
 * Waits until a service that stops tells that it takes no more requests. It closes the connections that are idle then,
 * perhaps while a request is on its way to it: such a request is sent again.
 * @param url of the public listener
 */
export function draining(url: string): Promise<void> {
  return until(() =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => !ok,
      () => false,
    ),
  );
}
