import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { buildPrompt } from "../../../src/engine/prompt.ts";
import { ask, askJson } from "./ask.ts";
import { ARTICLE, BRIDGE, GERMAN_INVOICE, PROSE_INVOICE, STACKED_INVOICE, US_INVOICE } from "./texts.ts";

const run = promisify(execFile);
const string = { type: "string" };
const number = { type: "number" };
const strict = (properties: Record<string, object>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** Each with the number, the date, the total and the e-mail address. */
const INVOICES: [text: string, number: string, date: string, total: number, email: string][] = [
  [US_INVOICE, "INV-2041", "2026-03-14", 1333.26, "billing@acme.example"],
  [GERMAN_INVOICE, "2026-0077", "2026-03-14", 1469.06, "rechnung@muster.example"],
  [PROSE_INVOICE, "77", "2026-05-03", 2450, "accounts@northwind.example"],
  [STACKED_INVOICE, "HP/2026/118", "2026-01-31", 980.5, "lena.brandt@mail.example"],
  [
    "Invoice INV-2041, 14 March 2026. Total due: EUR 1,234.50. Questions: billing@example.com",
    "INV-2041",
    "2026-03-14",
    1234.5,
    "billing@example.com",
  ],
  [
    "Invoice #INV-2041 dated 14 March 2026 for a total of $1,234.50, due in 30 days. Contact billing@example.com.",
    "INV-2041",
    "2026-03-14",
    1234.5,
    "billing@example.com",
  ],
  [
    "Please find invoice 2026-0042 issued 03/14/2026. Amount due: $99.00 by 04/13/2026. Reply to ap@x.example",
    "2026-0042",
    "2026-03-14",
    99,
    "ap@x.example",
  ],
  [
    "Due date: 04/13/2026\nCustomer number: 778\nInvoice date: 03/14/2026\nInvoice: 99812\n" +
      "Total hours: 200\nTotal: $50.00\na@x.example",
    "99812",
    "2026-03-14",
    50,
    "a@x.example",
  ],
  [
    "| Invoice number | INV-9 |\n| Date | 2026-03-14 |\n" +
      "| Net total | 100.00 |\n| Total | 120.00 |\n| Email | z@z.example |",
    "INV-9",
    "2026-03-14",
    120,
    "z@z.example",
  ],
];

test("reads number, date, total and e-mail address of an invoice in the usual layouts", async () => {
  const nullable = { type: ["string", "null"] };
  for (const [text, ...expected] of INVOICES) {
    for (const names of [
      ["number", "date", "total", "email"],
      ["invoice_number", "invoice_date", "total_amount", "contact_email"],
      ["invoiceNo", "issueDate", "amountDue", "customerEmail"],
    ]) {
      const values = Object.fromEntries(names.map((name, i) => [name, expected[i]]));
      const types = [string, string, number, nullable];
      const schema = strict(Object.fromEntries(names.map((name, i) => [name, types[i] ?? string])));
      for (const prompt of [text, `Extract the data of this invoice:\n\n${text}`, `Extract the invoice: ${text}`]) {
        assert.deepEqual(await askJson(prompt, schema), values, prompt);
      }
    }
  }
});

test("reads the other members of an invoice", async () => {
  const schema = strict({
    due_date: { type: ["string", "null"] },
    subtotal: { type: ["number", "null"] },
    tax: number,
    customer: { type: ["string", "null"] },
    currency: { type: "string", enum: ["USD", "EUR"] },
    lines: { type: "array", items: strict({ description: string, amount: number }) },
  });
  assert.deepEqual(await askJson(US_INVOICE.replaceAll("$", "USD "), schema), {
    due_date: "2026-04-13",
    subtotal: 1234.5,
    tax: 98.76,
    customer: null,
    currency: "USD",
    lines: [],
  });
  assert.deepEqual(await askJson(PROSE_INVOICE, schema), {
    due_date: "2026-06-02",
    subtotal: 2000,
    tax: 450,
    customer: null,
    currency: "EUR",
    lines: [],
  });
});

test("reads labels in capital letters when V8 compiles patterns without optimisation", async () => {
  // V8 does so as soon as a process has compiled 1 MB of patterns and has 16 MB of code.
  const code =
    'import { extract } from "./src/models/offline/extract.ts";' +
    "process.stdout.write(extract(process.argv[1], process.argv[2], {}));";
  const schema = strict({ invoice_number: string, date: string });
  const text = "Rechnung Nr. 2026-0077, March 14, 2026";
  const { stdout } = await run(
    process.execPath,
    ["--no-regexp-optimization", "--input-type=module", "-e", code, JSON.stringify(schema), text],
    { cwd: resolve(import.meta.dirname, "../../.."), timeout: 60_000 },
  );
  assert.deepEqual(JSON.parse(stdout), { invoice_number: "2026-0077", date: "2026-03-14" });
});

test("writes dates as ISO dates, and null for a date that does not exist", async () => {
  const schema = strict({ date: { type: ["string", "null"] } });
  for (const date of [
    "2026-03-14",
    "14.03.2026",
    "03/14/2026",
    "14 March 2026",
    "March 14, 2026",
    "14th of March 2026",
  ]) {
    assert.deepEqual(await askJson(`Date: ${date}`, schema), { date: "2026-03-14" }, date);
  }
  assert.deepEqual(await askJson("Date: 31.02.2026", schema), { date: null });
});

test("reads numbers with a decimal point or a decimal comma", async () => {
  for (const [text, total] of [
    ["1,234.50", 1234.5],
    ["1.234,50", 1234.5],
    ["$1,234", 1234],
    ["1.234,50 EUR", 1234.5],
    ["12.5", 12.5],
    ["1,234,567.89", 1234567.89],
    ["980", 980],
  ] as const) {
    assert.deepEqual(await askJson(`Total: ${text}`, strict({ total: number })), { total }, text);
  }
});

test("takes no end of a word for a label", async () => {
  const text = "Subtotal (before the discount of members of a club): 100.00\nTotal: 90.00";
  assert.deepEqual(await askJson(text, strict({ total: number })), { total: 90 });
});

test("finds labelled values in any spelling of the label, within the objects that they belong to", async () => {
  const text =
    "Order no: 10045\nCustomer: Jane Doe\nCustomer email: jane@x.example\n" +
    "Shipping method: Express courier\nItems in stock: 12\nGift wrap: yes\nExpress: no\n" +
    "Vendor email: sales@y.example\nColours: red, green and blue";
  const party = strict({ email: string });
  const schema = strict({
    orderNumber: string,
    customer_name: string,
    "shipping-method": string,
    items_in_stock: { type: "integer" },
    giftWrap: { type: "boolean" },
    express: { type: "boolean" },
    vendor: party,
    customer: party,
    emails: { type: "array", items: string },
    colours: { type: "array", items: string },
  });
  assert.deepEqual(await askJson(text, schema), {
    orderNumber: "10045",
    customer_name: "Jane Doe",
    "shipping-method": "Express courier",
    items_in_stock: 12,
    giftWrap: true,
    express: false,
    vendor: { email: "sales@y.example" },
    customer: { email: "jane@x.example" },
    emails: ["jane@x.example", "sales@y.example"],
    colours: ["red", "green", "blue"],
  });
});

test("reads the name and the age of a person in the usual wordings", async () => {
  const schema = strict({ name: string, age: { type: "integer" } });
  for (const [text, name] of [
    ["Extract the name and the age: Ann is 30 years old.", "Ann"],
    ["My name is Ann and I am 30 years old.", "Ann"],
    ["Name: Ann. Age: 30.", "Ann"],
    ["Extract name and age: John Smith, 30 years old, lives in Berlin.", "John Smith"],
    ["In 2024 the 30-year-old Jane Doe moved to Oslo.", "Jane Doe"],
    ["There are 12 pupils. One of them is called Élodie, age 30.", "Élodie"],
  ] as const)
    assert.deepEqual(await askJson(text, schema), { name, age: 30 }, text);
});

test("chooses among allowed values, beside a label or elsewhere in the text", async () => {
  const option = (...values: string[]) => strict({ status: { type: "string", enum: values } });
  for (const [text, schema, status] of [
    ["Status: closed\nIt was open for a week.", option("open", "closed"), "closed"],
    ["The parcel is in transit.", option("delivered", "in_transit"), "in_transit"],
    ["Nothing fits.", option("red", "other"), "other"],
  ] as const) {
    assert.deepEqual(await askJson(text, schema), { status });
  }
  const colours = { type: "array", items: { type: "string", enum: ["blue", "green", "red"] } };
  assert.deepEqual(await askJson("It comes in red and blue.", strict({ colours })), { colours: ["blue", "red"] });
});

test("fills a missing value with null, leaves it out, or takes the simplest value within the bounds", async () => {
  const schema = {
    type: "object",
    properties: {
      email: { type: ["string", "null"] },
      phone: string,
      total: { type: "number", minimum: 5 },
      code: { type: "string", minLength: 3, maxLength: 4 },
      tags: { type: "array", items: string },
      people: { type: "array", items: strict({ email: string }), minItems: 2 },
      customer: { type: "object", properties: { email: string }, required: ["email"] },
      kind: { type: "string", const: "letter" },
    },
    required: ["email", "total", "code", "tags", "people", "kind"],
  };
  const plainest = { email: null, total: 5, code: "   ", tags: [], kind: "letter" };
  const people = [{ email: "" }, { email: "" }];
  assert.deepEqual(await askJson("Nothing to see here. Really not.", schema), { ...plainest, people });
  const found = [{ email: "a@x.example" }, { email: "" }];
  const { people: read } = (await askJson("Nothing to see here. Ask a@x.example.", schema)) as { people: unknown };
  assert.deepEqual(read, found);
});

test("fills members for summaries, answers and results", async () => {
  const { summary } = (await askJson(ARTICLE, strict({ summary: string }))) as { summary: string };
  assert.ok(summary.length < ARTICLE.length / 2 && summary.includes("ferry"));
  assert.deepEqual(await askJson("What is 17 * 23 + 4?", strict({ answer: number })), { answer: 395 });
  assert.deepEqual(await askJson("What is 12% of 250?", strict({ result: string })), { result: "30" });
  assert.deepEqual(await askJson(`Who designed the bridge?\n\n${BRIDGE}`, strict({ answer: string })), {
    answer: "It was designed by Ingrid Holm and opened in 1932.",
  });
});

test("keeps the schema's order and names, and the digits of constants", async () => {
  const text =
    '{"type":"object","properties":{"z":{"type":"string"},"2":{"type":"string"},' +
    '"1":{"type":"integer","const":123456789012345678901234567890},"__proto__":{"type":"string"}},' +
    '"required":["z","2","1","__proto__"]}';
  const answer = await ask("z: a\n", { format: { type: "schema", schema: text } });
  assert.equal(answer, '{"z":"a","2":"","1":123456789012345678901234567890,"__proto__":""}');
});

test("answers nested lists and the largest schema in time", async () => {
  let nested: object = { type: "string", minLength: 3 };
  for (let level = 1; level < 10; level++) nested = { type: "array", items: nested, minItems: 3 };
  const wide = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`field${i}`, string]));
  const start = process.cpuUsage();
  await askJson(US_INVOICE, strict({ nested }));
  await askJson(US_INVOICE, strict({ list: { type: "array", items: string, minItems: 1e9 } }));
  await askJson(ARTICLE.repeat(60), strict(wide));
  assert.ok(process.cpuUsage(start).user < 2_000_000);
});

test("takes the members that the request names when there is no schema", async () => {
  const person = "Jane Doe (jane@x.example) owes us $45.20.";
  const expected = { name: "Jane Doe", email: "jane@x.example", total: 45.2 };
  for (const prompt of [
    `Extract name, email and total as JSON: ${person}`,
    `Return JSON with the keys name, email, total.\n\n${person}`,
    `Return JSON with keys: name, email, total.\n\n${person}`,
    `Give me a JSON object with name, email and total for: ${person}`,
    `Return {"name": "...", "email": "...", "total": 0} for: ${person}`,
    `${person}\n\nReturn JSON in this shape:\n{\n  "name": "",\n  "email": "",\n  "total": 0\n}`,
  ]) {
    assert.deepEqual(await askJson(prompt), expected, prompt);
  }
  assert.deepEqual(await askJson(`${US_INVOICE}\n\nExtract the invoice number, the due date and all emails.`), {
    invoice_number: "INV-2041",
    due_date: "2026-04-13",
    emails: ["billing@acme.example"],
  });
});

test("gives an answer or a summary when the request names no members", async () => {
  const extract = async (text: string) => {
    const system = ["You are Acme's help desk. Return JSON with the fields name and email."];
    const prompt = buildPrompt({ system, messages: [{ role: "user", text }], continues: false }, "extract");
    return JSON.parse(await ask("", { prompt, format: { type: "json" } }));
  };
  assert.deepEqual(await extract("What is 2 + 2?"), { answer: 4 });
  assert.deepEqual(await extract("What is the capital of France?"), { answer: null });
  assert.deepEqual(await extract("What are the members that the request asks for?"), { answer: null });
  assert.deepEqual(await extract(`Who designed the bridge?\n\n${BRIDGE}`), {
    answer: "It was designed by Ingrid Holm and opened in 1932.",
  });
  for (const prompt of [ARTICLE, `Summarise as JSON.\n\n${ARTICLE}`, `Analyse this article:\n\n${ARTICLE}`]) {
    const answer = await extract(prompt);
    assert.deepEqual(Object.keys(answer), ["summary"]);
    assert.match(answer.summary, /electric ferry/);
  }
});
