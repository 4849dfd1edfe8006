import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, fromJson, toJson } from "@bufbuild/protobuf";
import { test } from "vitest";
import { changed, type Draft, EMPTY, requestOf } from "../../console/src/playground/draft.ts";
import { type Language, snippet } from "../../console/src/playground/snippets.ts";
import { GenerateRequestSchema } from "../../gen/chorus/v1/generation_pb.js";

const SPECIAL_CHARACTERS = 'it\'s "quoted"\nJSON\n$(touch broken) `touch broken` \\ \u2028 é 😀';

const DRAFTS: Record<string, Draft> = {
  text: {
    ...EMPTY,
    prompt: SPECIAL_CHARACTERS,
    system: SPECIAL_CHARACTERS,
    temperature: "0.5",
    maxTokens: "100",
    stops: ["\\n", "'"],
  },
  extract: {
    ...EMPTY,
    mode: "extract",
    input: "messages",
    messages: [{ id: 1, role: "user", content: SPECIAL_CHARACTERS }],
  },
  schema: { ...EMPTY, mode: "json_schema", webSearch: true, prompt: SPECIAL_CHARACTERS, effort: "low" },
  files: {
    ...EMPTY,
    prompt: SPECIAL_CHARACTERS,
    files: [{ name: "it's.txt", mediaType: "text/plain", data: new Uint8Array(3) }],
  },
};

const run = promisify(execFile);

test("the curl snippet sends the request of the draft", async (t) => {
  if (!(await run("curl", ["--version"]).catch(() => undefined))) return t.skip("there is no curl here");
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    bodies.push(`${request.url} ${request.headers["x-api-key"]} ${body}`);
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => void server.close());
  const folder = await mkdtemp(join(tmpdir(), "chorus-snippet-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "it's.txt"), "abc");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const send = async (draft: Draft | undefined) => {
    assert.ok(draft);
    await run("sh", ["-c", snippet("curl", draft, origin)], {
      cwd: folder,
      env: { ...process.env, CHORUS_API_KEY: "ck_1" },
    });
    const [, path, key, body = ""] = /^(\S+) (\S+) ([\s\S]*)$/.exec(bodies.pop() ?? "") ?? [];
    return { path, key, body: JSON.parse(body) };
  };
  const { path, key, body } = await send(DRAFTS.text);
  assert.deepEqual([path, key], ["/v1/generate:stream", "ck_1"]);
  assert.deepEqual(body, {
    prompt: SPECIAL_CHARACTERS,
    system: SPECIAL_CHARACTERS,
    temperature: 0.5,
    max_tokens: 100,
    stop_sequences: ["\\n", "'"],
  });
  assert.deepEqual((await send(DRAFTS.extract)).body, {
    messages: [{ role: "user", content: SPECIAL_CHARACTERS }],
    output_shape: "extract",
  });
  const strict = await send(DRAFTS.schema);
  assert.equal(strict.path, "/v1/generate");
  assert.deepEqual(strict.body.response_format, { type: "json_schema", schema: JSON.parse(EMPTY.schema) });
  assert.deepEqual((await send(DRAFTS.files)).body.attachments, [
    { name: "it's.txt", media_type: "text/plain", data: "YWJj" },
  ]);
});

test("the RPC snippets send the request of the draft as protobuf's JSON", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-snippet-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "it's.txt"), "abc");
  // In place of buf and grpcurl: prints the arguments and the input.
  for (const name of ["buf", "grpcurl"])
    await writeFile(join(folder, name), '#!/bin/sh\nprintf "%s\\n" "$*"\ncat\n', { mode: 0o755 });
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, CHORUS_API_KEY: "ck_1" };
  for (const language of ["buf curl", "grpcurl"] as const) {
    for (const [name, draft] of Object.entries(DRAFTS)) {
      const { stdout } = await run("sh", ["-c", snippet(language, draft, "")], { cwd: folder, env });
      const [, command = "", input = ""] = /^(.*)\n([\s\S]*)$/.exec(stdout) ?? [];
      assert.match(command, /x-api-key: ck_1/);
      const service = `chorus.v1.GenerationService/${draft.mode === "json_schema" ? "Generate" : "StreamGenerate"}`;
      assert.ok(command.includes(service), `${name}: ${command}`);
      const sent = fromJson(GenerateRequestSchema, JSON.parse(input));
      const files = draft.files.map((file) => ({ ...file, data: Buffer.from("abc") }));
      assert.deepEqual(
        toJson(GenerateRequestSchema, sent),
        toJson(GenerateRequestSchema, create(GenerateRequestSchema, requestOf({ ...draft, files }))),
      );
    }
  }
});

test("clears stop sequences and the continuation when they no longer apply", () => {
  const draft = { ...EMPTY, stops: ["a"], input: "messages" as const, continues: true };
  const messages = [{ id: 1, role: "assistant" as const, content: "Once" }];
  const continued = changed(draft, { messages });
  assert.deepEqual([continued.stops, continued.continues], [["a"], true]);
  const strict = changed(continued, { mode: "json_schema" });
  assert.deepEqual([strict.stops, strict.continues], [[], false]);
  assert.equal(changed(continued, { input: "prompt" }).continues, false);
});

test("the TypeScript snippet has valid syntax", async () => {
  for (const [name, draft] of Object.entries(DRAFTS)) {
    const text = snippet("TypeScript", draft, "http://localhost");
    const child = run(process.execPath, ["--check", "--input-type=module"]);
    child.child.stdin?.end(text);
    await assert.doesNotReject(child, `${name}:\n${text}`);
  }
});

const languages: Language[] = ["curl", "TypeScript", "Python"];
test("every snippet contains the address and the prompt but not the key", () => {
  for (const language of languages) {
    const text = snippet(language, { ...EMPTY, prompt: "What?" }, "http://localhost:8080");
    assert.ok(
      text.includes("CHORUS_API_KEY") && text.includes("http://localhost:8080") && text.includes("What?"),
      text,
    );
  }
});
