import { createServer } from "node:net";
import { test } from "vitest";

test("leaves a timer and a server open", () => {
  setTimeout(() => undefined, 60_000);
  createServer().listen(0);
});

test("leaves nothing open", () => undefined);
