import { test } from "vitest";

test("leaves nothing open in a file", () => undefined);
