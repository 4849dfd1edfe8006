import assert from "node:assert/strict";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { test } from "vitest";
import { createSecret, hashSecret, isWellFormed, prefixOf } from "../../src/admission/secret.ts";

test("creates unique secrets of one length", () => {
  const secrets = Array.from({ length: 1_000 }, () => createSecret("ck_"));
  assert.equal(new Set(secrets).size, 1_000);
  for (const secret of secrets) {
    assert.match(secret, /^ck_[0-9A-Za-z]{33}$/);
    assert.equal(isWellFormed(secret, "ck_"), true);
    assert.equal(isWellFormed(secret, "op_"), false);
  }
  assert.match(createSecret("op_"), /^op_[0-9A-Za-z]{33}$/);
});

test("detects a typing error anywhere in a secret", () => {
  const secret = createSecret("ck_");
  fc.assert(
    fc.property(fc.nat(secret.length - 1), fc.constantFrom(..."0aZz_ é"), (at, character) => {
      const changed = secret.slice(0, at) + character + secret.slice(at + 1);
      assert.equal(isWellFormed(changed, "ck_"), changed === secret);
    }),
  );
  for (const wrong of ["", "ck_", secret.slice(1), secret.slice(0, -1), `${secret}0`])
    assert.equal(isWellFormed(wrong, "ck_"), false);
  // A shorter one, with the checksum of "ck_a" in base 62.
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let checksum = "";
  for (let rest = crc32("ck_a"); checksum.length < 6; rest = Math.floor(rest / 62))
    checksum = digits.charAt(rest % 62) + checksum;
  assert.equal(isWellFormed(`ck_a${checksum}`, "ck_"), false);
});

test("hashes a secret with SHA-256, and shows at most a quarter of it as its prefix", () => {
  assert.equal(hashSecret("abc").toString("hex"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(prefixOf("ck_0123456789ABCDEFGHIJKLMNOPQRSTUVWXY").length, 9);
  assert.equal(prefixOf("sixteen-letters!"), "sixt");
});
