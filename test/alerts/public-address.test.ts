import assert from "node:assert/strict";
import { test } from "vitest";
import { isPublicAddress } from "../../src/alerts/public-address.ts";

test("tells addresses of the public internet from all others", () => {
  for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "192.167.1.1", "100.128.0.1", "2606:4700::1111"]) {
    assert.ok(isPublicAddress(address), address);
  }
  const others =
    "0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1 " +
    "198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::10.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::a00:1 fc00::1 " +
    "fd12:3456::1 fe80::1 ff02::1 2002:a00:1:: 2001:db8::1 2001:0:a00:1::";
  for (const address of others.split(" ")) assert.ok(!isPublicAddress(address), address);
  for (const text of ["", "localhost", "1.1.1", "example.com"]) assert.ok(!isPublicAddress(text), text);
});
