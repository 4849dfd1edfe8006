import fc from "fast-check";

/**
 * Any character except lone surrogates, as `unit: "binary"` of fast-check, which takes half a second of each process to
 * list the ranges.
 */
export const codePoint = fc
  .oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 0x7f }) },
    { weight: 3, arbitrary: fc.integer({ min: 0x80, max: 0xd7ff }) },
    { weight: 4, arbitrary: fc.integer({ min: 0xe000, max: 0x10ffff }) },
  )
  .map((point) => String.fromCodePoint(point));
