import { createServer } from "node:net";
import { test } from "vitest";

test("leaves timers and a server open", () => {
  for (let i = 0; i < 3; i++) setTimeout(() => undefined, 60_000);
  createServer().listen(0);
});

test("leaves nothing open", () => undefined);
