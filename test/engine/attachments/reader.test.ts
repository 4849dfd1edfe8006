import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { deflateRawSync, deflateSync } from "node:zlib";
import { afterAll, describe, it } from "vitest";
import { Failure } from "../../../src/contract/failure.ts";
import type { Attachment } from "../../../src/engine/attachments/attachment.ts";
import { CharacterMaps } from "../../../src/engine/attachments/character-maps.ts";
import { type Budget, createReader, type Reader, type ReadFiles } from "../../../src/engine/attachments/reader.ts";
import { until } from "../../helpers/until.ts";
import { docx, encryptedPdf, paragraph, pdf, png, zip } from "./files.ts";

const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const PDF = "application/pdf";
const BUDGET = { question: "", tokens: 10_000, promptField: "messages", owner: "ws_1" };

// A busy machine takes longer than the default.
const reader = createReader({ milliseconds: 60_000 });
afterAll(() => reader.close());

function file(mediaType: string, data: string | Uint8Array, name = "file"): Attachment {
  return { name, mediaType, data: typeof data === "string" ? Buffer.from(data) : data };
}

function read(
  files: Attachment[],
  budget: Partial<Budget> = BUDGET,
  by: Reader = reader,
  signal = new AbortController().signal,
): Promise<ReadFiles> {
  return by.read(files, { ...BUDGET, ...budget }, signal);
}

async function textOf(mediaType: string, data: string | Uint8Array): Promise<string | undefined> {
  const { texts, notices } = await read([file(mediaType, data)]);
  assert.deepEqual(notices, []);
  return texts[0]?.text;
}

async function refused(files: Attachment[], field: string, message: RegExp, by = reader): Promise<void> {
  const attempt = () =>
    read(files, BUDGET, by).then(
      () => assert.fail("was not refused"),
      (error: unknown) => error,
    );
  let error = await attempt();
  // The thread did not get the processor for some seconds.
  while (error instanceof Failure && error.kind === "overloaded") error = await attempt();
  assert.ok(error instanceof Failure);
  assert.deepEqual([error.kind, error.field], ["invalid_request", field]);
  assert.match(error.message, message);
  assert.ok(error.message.startsWith(field));
  assert.equal(error.cause, undefined);
}

describe("reading of attachments", () => {
  it("reads text types as they are, without a byte order mark", async () => {
    assert.equal(await textOf("text/plain", "\ufeffGrüße\r\n"), "Grüße\r\n");
    for (const type of ["text/markdown", "text/csv", "application/json", "application/xml", "text/xml", "TEXT/Plain"]) {
      assert.equal(await textOf(type, '{"a": <b>, 1}'), '{"a": <b>, 1}');
    }
  });

  it("reads HTML, Word and PDF into text", async () => {
    assert.equal(await textOf("text/html", "<h1>T</h1><script>x</script><p>a&amp;b"), "# T\n\na&b");
    assert.equal(await textOf(PDF, pdf(["First page", "Second page"])), "First page\n\nSecond page");
    const table = `<w:tbl><w:tr><w:tc>${paragraph("a")}</w:tc><w:tc>${paragraph("b")}</w:tc></w:tr></w:tbl>`;
    const word = docx(paragraph("Title", "Heading1") + paragraph("A &amp; B") + table);
    assert.equal(await textOf(DOCX, word), "# Title\n\nA & B\n\na | b");
  });

  // Most PDFs in these languages contain no map from their codes to characters: they name one that each reader has.
  it.each([
    ["Japan1", "UniJIS-UCS2-H", "65e5672c8a9e", "日本語"],
    ["Japan1", "90ms-RKSJ-H", "93fa967b8cea", "日本語"],
    ["Japan1", "Identity-H", "0e8a", "本"],
    ["GB1", "GBK-EUC-H", "d6d0cec4", "中文"],
    ["CNS1", "ETen-B5-H", "a4a4a4e5", "中文"],
    ["Korea1", "KSCms-UHC-H", "c7d1b1db", "한글"],
  ])("reads a PDF whose text is in %s by the character map %s", async (ordering, map, codes, text) => {
    const system = `/CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) /Supplement 2 >>`;
    const font = `<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /${map} /DescendantFonts [1000 0 R] >>`;
    const objects: [number, string][] = [
      [1000, `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Any ${system} /FontDescriptor 1001 0 R >>`],
      [1001, "<< /Type /FontDescriptor /FontName /Any /Flags 6 /FontBBox [0 0 1000 1000] /ItalicAngle 0 >>"],
    ];
    const contents = [deflateSync(`BT /F1 12 Tf 72 720 Td <${codes}> Tj ET`)];
    assert.equal(await textOf(PDF, pdf([], { contents, font, objects })), text);
  });

  it("reads a merged PDF in which each page has its own fonts that name a character map", async () => {
    const [pages, perPage] = [60, 3];
    const places = Array.from({ length: pages }, (_, page) => page);
    const fonts = Array.from({ length: perPage }, (_, font) => font);
    const numberOf = (page: number, font: number) => 1_000 + 2 * (perPage * page + font);
    const descendant = "/Subtype /CIDFontType0 /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>";
    const objects = places.flatMap((page) =>
      fonts.flatMap((font): [number, string][] => {
        const number = numberOf(page, font);
        const head = `<< /Type /Font /BaseFont /Any${number}`;
        const own = `${head} ${descendant} /FontDescriptor ${number + 1} 0 R >>`;
        return [
          [number, `${head} /Subtype /Type0 /Encoding /90ms-RKSJ-H /DescendantFonts [${own}] >>`],
          [number + 1, `<< /Type /FontDescriptor /FontName /Any${number} /Flags 6 /FontBBox [0 0 1000 1000] >>`],
        ];
      }),
    );
    const content = deflateSync(fonts.map((font) => `BT /G${font} 12 Tf 72 720 Td <93fa967b8cea> Tj ET`).join("\n"));
    const merged = pdf([], {
      contents: places.map(() => content),
      fonts: (page) => fonts.map((font) => `/G${font} ${numberOf(page, font)} 0 R`).join(" "),
      objects,
    });
    const text = await textOf(PDF, merged);
    assert.equal(text?.match(/日本語/g)?.length, pages * perPage);
  });

  it("gives a character map again after the buffer of the first one was transferred", async () => {
    const maps = new CharacterMaps();
    const fetch = () => maps.fetch({ kind: "cMapUrl", filename: "UniJIS-UCS2-H.bcmap" });
    const map = await fetch();
    assert.equal(map.buffer.byteLength, map.length);
    structuredClone(map, { transfer: [map.buffer] });
    assert.ok((await fetch()).length > 0);
  });

  it("gives texts with their tokens and unchanged images, each kind in order", async () => {
    const data = png(300, 200);
    const { texts, images, notices } = await read([
      file("text/plain", "hello world", "a.txt"),
      { ...file("image/png", data, "b.png"), at: 3 },
      { ...file("text/plain", "", "c.txt"), at: 1 },
    ]);
    assert.deepEqual(texts, [
      { name: "a.txt", at: undefined, text: "hello world", tokens: 2 },
      { name: "c.txt", at: 1, text: "", tokens: 0 },
    ]);
    assert.deepEqual(images, [{ name: "b.png", at: 3, mediaType: "image/png", data, tokens: 80 }]);
    assert.equal(images[0]?.data, data);
    assert.deepEqual(
      notices.map(({ code, field }) => [code, field]),
      [["attachment_without_text", "attachments[2]"]],
    );
  });

  it("reads bytes that are part of a larger buffer, and does not transfer them", async () => {
    const body = Buffer.from("before|the file|after");
    const { texts } = await read([file("text/plain", body.subarray(7, 15))]);
    assert.equal(texts[0]?.text, "the file");
    assert.equal(body.toString(), "before|the file|after");
  });

  it("gives each of many concurrent requests its text", async () => {
    const requests = Array.from({ length: 12 }, (_, i) =>
      i % 2 ? file(PDF, pdf([`text ${i}`])) : file("text/plain", `text ${i}`),
    );
    const answers = await Promise.all(requests.map((request) => read([request])));
    assert.deepEqual(
      answers.map(({ texts }) => texts[0]?.text),
      requests.map((_, i) => `text ${i}`),
    );
  });

  it("takes an image for what its bytes are, whichever type of images is declared", async () => {
    const { images } = await read([file("image/jpeg", png(750, 10)), file("image/png", png(10, 10))]);
    assert.deepEqual(
      images.map(({ mediaType, tokens }) => [mediaType, tokens]),
      [
        ["image/png", 10],
        ["image/png", 1],
      ],
    );
  });

  it("names the type that the bytes suggest when the declared type is wrong", async () => {
    const image = png(10, 10);
    await refused([file("text/plain", "ok"), file(PDF, image)], "attachments[1].media_type", /image\/png/);
    await refused([file(DOCX, image)], "attachments[0].media_type", /image\/png/);
    await refused([file("text/csv", image)], "attachments[0].media_type", /image\/png/);
    await refused([file("text/plain", pdf(["x"]))], "attachments[0].media_type", /text\/plain/);
    await refused([file("text/plain", "a\0b")], "attachments[0].media_type", /text\/plain/);
    await refused([file("image/gif", "just text")], "attachments[0].media_type", /the content is not of this type/);
    await refused([file(DOCX, zip({ "a.txt": "x" }))], "attachments[0].media_type", /application\/zip/);
    const old = Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(600)]);
    await refused([file(DOCX, old)], "attachments[0].media_type", /password/);
  });

  it("refuses a damaged file, and says how to fix it", async () => {
    await refused([file("text/plain", Buffer.from("Gr\xfc\xdfe", "latin1"))], "attachments[0].data", /UTF-8/);
    await refused([file(DOCX, docx(paragraph("x")).subarray(0, 500))], "attachments[0].data", /damaged Word/);
    await refused([file(PDF, pdf(["x", "y"]).subarray(0, 400))], "attachments[0].data", /damaged PDF/);
    await refused([file(PDF, encryptedPdf())], "attachments[0].data", /password/);
    await refused([file("image/png", png(10, 10).subarray(0, 60))], "attachments[0].data", /end is missing/);
  });

  it("adds a notice for a PDF without text, and for pages without text", async () => {
    const blank = deflated("0 0 m 9 9 l S");
    const codes = async (contents: Buffer[]) => (await read([file(PDF, pdf([], { contents }))])).notices;
    const [none] = await codes([blank]);
    assert.equal(none?.code, "attachment_without_text");
    const [some, ...others] = await codes([deflated("BT /F1 9 Tf (text) Tj ET"), blank]);
    assert.deepEqual(others, []);
    assert.deepEqual([some?.code, some?.field], ["attachment_without_text", "attachments[0]"]);
    assert.match(some?.message ?? "", /^1 of the 2 pages/);
  });

  it("reads 500 pages of 1,000, with a notice about the others", async () => {
    const { texts, notices } = await read([file(PDF, pdf(Array.from({ length: 1_000 }, (_, i) => `page ${i + 1}`)))]);
    const last = Number(/page (\d+)$/.exec(texts[0]?.text ?? "")?.[1]);
    // A slow machine reads fewer within the time limit.
    assert.ok(last > 0 && last <= 500);
    const others = "the others are too many, too slow or damaged.";
    assert.deepEqual(notices, [
      {
        code: "attachment_pages_left_out",
        message: `${last} of the 1000 pages of attachments[0] were read; ${others}`,
        field: "attachments[0]",
      },
    ]);
  });

  it("keeps the part of a long file that answers the question", async () => {
    const paragraph = `${"Nothing of note happened on that day in the town. ".repeat(20)}\n\n`;
    const filler = paragraph.repeat(50);
    const long = `Diary of a clerk.\n\n${filler}The zeppelin landed at noon.\n\n${filler}`;
    const { texts, notices } = await read([file("text/plain", long)], {
      question: "When did the zeppelin land?",
      tokens: 1000,
    });
    const [{ text = "", tokens = 0 } = {}] = texts;
    assert.ok(tokens > 0 && tokens <= 1000);
    assert.ok(text.startsWith("Diary of a clerk."));
    assert.ok(text.includes("zeppelin landed at noon") && text.includes("[…]"));
    assert.deepEqual(
      notices.map(({ code, field }) => [code, field]),
      [["attachments_shortened", "attachments[0]"]],
    );
    assert.match(notices[0]?.message ?? "", new RegExp(`of ${long.length} characters`));
  });

  it("counts images against the budget", async () => {
    const image = file("image/png", png(700, 700));
    assert.equal((await read([image], { question: "", tokens: 654 })).images[0]?.tokens, 654);
    await assert.rejects(read([image], { question: "", tokens: 653 }), {
      kind: "request_too_long",
      field: "messages",
    });
    const { texts } = await read([image, file("text/plain", "word ".repeat(500))], { question: "", tokens: 754 });
    assert.ok((texts[0]?.tokens ?? 0) > 0 && (texts[0]?.tokens ?? 0) <= 100);
  });
});

describe("threads", () => {
  const script = new URL("./stuck-worker.ts", import.meta.url);

  it("are ended when a file takes too long, and the next file is read", async () => {
    await using slow = closing(createReader({ script, threads: 1, milliseconds: 1_000 }));
    await refused([file(PDF, "ok"), file(PDF, "hang")], "attachments[1].data", /too long/, slow.reader);
    assert.equal((await read([file(PDF, "ok")], BUDGET, slow.reader)).texts[0]?.text, "ok");
  });

  it("may wait for the processor longer than a file may use it", async () => {
    await using slow = closing(createReader({ script, threads: 1, milliseconds: 1_000 }));
    assert.equal((await read([file(PDF, "wait")], BUDGET, slow.reader)).texts[0]?.text, "wait");
  });

  it("refuse a file as overloaded when they do not get the processor, and the next file is read", async () => {
    await using starved = closing(createReader({ script, threads: 1, milliseconds: 1_000 }));
    await assert.rejects(read([file(PDF, "starve")], BUDGET, starved.reader), { kind: "overloaded" });
    assert.equal((await read([file(PDF, "ok")], BUDGET, starved.reader)).texts[0]?.text, "ok");
  });

  it("cause an internal failure without details when they die", async () => {
    await using dying = closing(createReader({ script, threads: 1 }));
    await assert.rejects(read([file(PDF, "die")], BUDGET, dying.reader), (error) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.kind, "internal");
      assert.doesNotMatch(error.message, /inner cause/);
      return true;
    });
    assert.equal((await read([file(PDF, "ok")], BUDGET, dying.reader)).texts[0]?.text, "ok");
  });

  it("keep one free for small files, in any order of files", async () => {
    await using busy = closing(createReader({ script, threads: 1 }));
    const caller = new AbortController();
    const hanging = [1, 2].map(() =>
      assert.rejects(read([file(PDF, "hang")], BUDGET, busy.reader, caller.signal), /gone/),
    );
    assert.equal((await read([file("text/plain", "light")], BUDGET, busy.reader)).texts[0]?.text, "light");
    caller.abort(new Error("gone"));
    await Promise.all(hanging);
    assert.equal((await read([file(PDF, "ok")], BUDGET, busy.reader)).texts[0]?.text, "ok");
  });

  it("are shared by owners: large files of one do not delay files of another", async () => {
    await using busy = closing(createReader({ script, threads: 2, waiting: 8 }));
    const caller = new AbortController();
    const hanging = [1, 2, 3].map(() =>
      assert.rejects(read([file(PDF, "hang")], { owner: "one" }, busy.reader, caller.signal), /gone/),
    );
    await assert.rejects(read([file(PDF, "hang")], { owner: "one" }, busy.reader), { kind: "overloaded" });
    assert.equal((await read([file(PDF, "ok")], { owner: "other" }, busy.reader)).texts[0]?.text, "ok");
    caller.abort(new Error("gone"));
    await Promise.all(hanging);
  });

  it("start the small files of an owner without running jobs first", async () => {
    await using busy = closing(createReader({ script, threads: 2 }));
    const caller = new AbortController();
    const small = (owner: string, text: string) => read([file("text/plain", text)], { owner }, busy.reader);
    const hanging = assert.rejects(
      read([file("text/plain", "hang")], { owner: "one" }, busy.reader, caller.signal),
      /gone/,
    );
    const ended: string[] = [];
    const owners = ["one", "one", "one", "other"];
    await Promise.all(owners.map((owner, i) => small(owner, `${i}`).then(() => ended.push(`${owner} ${i}`))));
    assert.deepEqual(ended, ["one 0", "other 3", "one 1", "one 2"]);
    caller.abort(new Error("gone"));
    await hanging;
  });

  it("have a bounded queue", async () => {
    const busy = createReader({ script, threads: 1, waiting: 1, waitingBytes: 10 });
    const overloaded = { kind: "overloaded", retryAfterMs: 1000 };
    const running = assert.rejects(read([file(PDF, "hang")], BUDGET, busy), { kind: "overloaded" });
    await assert.rejects(read([file(PDF, "elevenbytes")], BUDGET, busy), overloaded);
    const waiting = assert.rejects(read([file(PDF, "ok")], BUDGET, busy), { kind: "overloaded" });
    await assert.rejects(read([file(PDF, "ok")], BUDGET, busy), overloaded);
    await busy.close();
    await Promise.all([running, waiting]);
    await assert.rejects(read([file(PDF, "ok")], BUDGET, busy), overloaded);
  });

  it("skip the files of a caller that has left", async () => {
    await using busy = closing(createReader({ script, threads: 1 }));
    const [first, second] = [new AbortController(), new AbortController()];
    const running = assert.rejects(read([file(PDF, "hang")], BUDGET, busy.reader, first.signal), /first/);
    const waiting = assert.rejects(read([file(PDF, "ok")], BUDGET, busy.reader, second.signal), /second/);
    second.abort(new Error("second"));
    await waiting;
    first.abort(new Error("first"));
    await running;
    await assert.rejects(
      read([file(PDF, "ok")], BUDGET, busy.reader, AbortSignal.abort(new Error("before"))),
      /before/,
    );
    assert.equal((await read([file(PDF, "ok")], BUDGET, busy.reader)).texts[0]?.text, "ok");
  });

  it("serve others after a caller has left during a short job", async () => {
    await using busy = closing(createReader({ script, threads: 1 }));
    const threadOf = async () => (await read([file(PDF, "thread")], BUDGET, busy.reader)).texts[0]?.text;
    const thread = await threadOf();
    const caller = new AbortController();
    const left = assert.rejects(read([file(PDF, "work")], BUDGET, busy.reader, caller.signal), /gone/);
    await setImmediate();
    caller.abort(new Error("gone"));
    await left;
    assert.equal(await threadOf(), thread);
  });

  it("do not keep the process alive when idle, and end on close", async () => {
    const running = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
    // Threads of earlier tests may still be ending.
    await until(() => running() === 0);
    await using idle = closing(createReader({ script }));
    await read([file(PDF, "ok")], BUDGET, idle.reader);
    await until(() => running() === 0);
  });
});

function closing(open: Reader): { reader: Reader } & AsyncDisposable {
  return { reader: open, [Symbol.asyncDispose]: () => open.close() };
}

function deflated(content: string): Buffer {
  return Buffer.concat([Buffer.from([0x78, 0x9c]), deflateRawSync(content), Buffer.alloc(4)]);
}
