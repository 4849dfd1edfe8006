import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, askJson, TIERS } from "./ask.ts";
import { ARTICLE, GERMAN_INVOICE, PROSE_INVOICE, STACKED_INVOICE, US_INVOICE } from "./texts.ts";

const string = { type: "string" };
const number = { type: "number" };
const strict = (properties: Record<string, object>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const item = strict({ description: string, quantity: { type: "integer" }, unit_price: number, amount: number });
const INVOICE = strict({
  invoice_number: string,
  date: { type: "string", description: "Invoice date" },
  due_date: { type: ["string", "null"] },
  subtotal: { type: ["number", "null"] },
  tax: { type: ["number", "null"] },
  total: number,
  currency: string,
  email: string,
  vendor: string,
  line_items: { type: "array", items: item },
});

for (const tier of TIERS) {
  test(`${tier}: an invoice with labels and a table`, async () => {
    assert.deepEqual(await askJson(US_INVOICE, INVOICE, { tier }), {
      invoice_number: "INV-2041",
      date: "2026-03-14",
      due_date: "2026-04-13",
      subtotal: 1234.5,
      tax: 98.76,
      total: 1333.26,
      currency: "USD",
      email: "billing@acme.example",
      vendor: "ACME Tools Inc.",
      line_items: [
        { description: "Widget, large", quantity: 2, unit_price: 100, amount: 200 },
        { description: "Widget, small", quantity: 10, unit_price: 103.45, amount: 1034.5 },
      ],
    });
  });

  test(`${tier}: a German invoice`, async () => {
    assert.deepEqual(await askJson(`Extract the invoice:\n\n${GERMAN_INVOICE}`, INVOICE, { tier }), {
      invoice_number: "2026-0077",
      date: "2026-03-14",
      due_date: null,
      subtotal: 1234.5,
      tax: 234.56,
      total: 1469.06,
      currency: "EUR",
      email: "rechnung@muster.example",
      vendor: "Muster GmbH",
      line_items: [
        { description: "Beratung", quantity: 1, unit_price: 1000, amount: 1000 },
        { description: "Schulung", quantity: 2, unit_price: 117.25, amount: 234.5 },
      ],
    });
  });

  test(`${tier}: an invoice in a letter`, async () => {
    assert.deepEqual(await askJson(PROSE_INVOICE, INVOICE, { tier }), {
      invoice_number: "77",
      date: "2026-05-03",
      due_date: "2026-06-02",
      subtotal: 2000,
      tax: 450,
      total: 2450,
      currency: "EUR",
      email: "accounts@northwind.example",
      vendor: "Northwind Traders Ltd.",
      line_items: [],
    });
  });

  test(`${tier}: an invoice with its labels above the values`, async () => {
    const schema = strict({
      invoiceNo: string,
      issueDate: string,
      amountDue: number,
      currency: string,
      customerEmail: string,
    });
    assert.deepEqual(await askJson(STACKED_INVOICE, schema, { tier }), {
      invoiceNo: "HP/2026/118",
      issueDate: "2026-01-31",
      amountDue: 980.5,
      currency: "GBP",
      customerEmail: "lena.brandt@mail.example",
    });
  });
}

test("dates in every usual spelling become ISO dates", async () => {
  const schema = strict({ date: string });
  for (const text of [
    "2026-03-14",
    "14.03.2026",
    "14.3.2026",
    "03/14/2026",
    "14/03/2026",
    "14 March 2026",
    "March 14, 2026",
    "14th of March 2026",
    "14. März 2026",
    "14 mars 2026",
    "Mar 14 2026",
  ]) {
    assert.deepEqual(await askJson(`Date: ${text}`, schema), { date: "2026-03-14" }, text);
  }
  assert.deepEqual(await askJson("Date: 31.02.2026", strict({ date: { type: ["string", "null"] } })), { date: null });
  const asWritten = strict({ date: { type: "string", description: "The date as written in the text" } });
  assert.deepEqual(await askJson("Date: 14 March 2026", asWritten), { date: "14 March 2026" });
});

test("numbers with either decimal sign", async () => {
  for (const [text, total] of [
    ["1,234.50", 1234.5],
    ["1.234,50", 1234.5],
    ["$1,234", 1234],
    ["€1.234", 1234],
    ["1'234.50 CHF", 1234.5],
    ["1 234,50 EUR", 1234.5],
    ["12.5", 12.5],
    ["1,234,567.89", 1234567.89],
    ["980", 980],
  ] as const) {
    assert.deepEqual(await askJson(`Total: ${text}`, strict({ total: number })), { total }, text);
  }
});

test("the total is the grand total, wherever it stands", async () => {
  const schema = strict({ total: number });
  for (const text of [
    "Total due: $120.00\nSubtotal: $100.00\nTax: $20.00",
    "Net total 100.00\nVAT 20.00\nGrand total 120.00",
    "Item one $500.00\nDiscount $380.00\nTotal: $120.00",
    "Sub-total: 100,00 €\nMwSt: 20,00 €\nSumme: 120,00 €",
    "Total excl. VAT: 100.00 EUR\nTotal VAT: 20.00 EUR\nTotal incl. VAT: 120.00 EUR",
  ]) {
    assert.deepEqual(await askJson(text, schema), { total: 120 }, text);
  }
});

test("labelled values, whatever the spelling of the name", async () => {
  const text =
    "Order no: 10045\nCustomer: Jane Doe\nShipping method: Express courier\nItems in stock: 12\nGift wrap: yes\nExpress: no";
  const schema = strict({
    orderNumber: string,
    customer_name: string,
    "shipping-method": string,
    items_in_stock: { type: "integer" },
    giftWrap: { type: "boolean" },
    express: { type: "boolean" },
  });
  assert.deepEqual(await askJson(text, schema), {
    orderNumber: "10045",
    customer_name: "Jane Doe",
    "shipping-method": "Express courier",
    items_in_stock: 12,
    giftWrap: true,
    express: false,
  });
});

test("people, companies, contacts and numbers in prose", async () => {
  const text =
    "Anna Berg joined Fjord Systems GmbH in Oslo on 2 June 2025. The company has 250 employees. Reach her at anna.berg@fjord.example or +47 22 12 34 56, or see https://fjord.example/team.";
  const schema = strict({
    person: string,
    company: string,
    city: string,
    start_date: { type: ["string", "null"] },
    employees: { type: "integer" },
    email: string,
    phone: string,
    website: string,
  });
  assert.deepEqual(await askJson(text, schema), {
    person: "Anna Berg",
    company: "Fjord Systems GmbH",
    city: "Oslo",
    start_date: null,
    employees: 250,
    email: "anna.berg@fjord.example",
    phone: "+47 22 12 34 56",
    website: "https://fjord.example/team",
  });
});

test("lists: all facts of a kind, labelled enumerations, bullet points, allowed values", async () => {
  const list = (items: object) => ({ type: "array", items });
  const text =
    "Write to a@x.example or b@x.example by 2026-01-05 or 6 May 2026.\nSkills: Go, SQL and Rust\n- first step\n- second step\nThe shirt comes in red and blue.";
  const schema = strict({
    emails: list(string),
    dates: list(string),
    skills: list(string),
    steps: list(string),
    colours: list({ type: "string", enum: ["blue", "green", "red"] }),
  });
  assert.deepEqual(await askJson(text, schema), {
    emails: ["a@x.example", "b@x.example"],
    dates: ["2026-01-05", "2026-05-06"],
    skills: ["Go", "SQL", "Rust"],
    steps: ["first step", "second step"],
    colours: ["red", "blue"],
  });
  const two = { ...list(string), minItems: 3, maxItems: 3 };
  assert.deepEqual(await askJson("a@x.example", strict({ emails: two })), { emails: ["a@x.example", "", ""] });
});

test("records: tables, paragraphs and lines", async () => {
  const people = strict({ people: { type: "array", items: strict({ name: string, email: string }) } });
  const expected = {
    people: [
      { name: "Jane Doe", email: "jane@x.example" },
      { name: "John Roe", email: "john@x.example" },
    ],
  };
  for (const text of [
    "| Name | Email |\n| --- | --- |\n| Jane Doe | jane@x.example |\n| John Roe | john@x.example |",
    "name,email\nJane Doe,jane@x.example\nJohn Roe,john@x.example",
    "Name: Jane Doe\nEmail: jane@x.example\n\nName: John Roe\nEmail: john@x.example",
    "Jane Doe (jane@x.example)\nJohn Roe (john@x.example)",
  ]) {
    assert.deepEqual(await askJson(text, people), expected, text);
  }
});

test("allowed values: beside a label, mentioned, by sentiment", async () => {
  const option = (...values: string[]) => strict({ status: { type: "string", enum: values } });
  assert.deepEqual(await askJson("Status: closed\nIt was open for a week.", option("open", "closed")), {
    status: "closed",
  });
  assert.deepEqual(await askJson("The parcel is in transit.", option("delivered", "in_transit")), {
    status: "in_transit",
  });
  assert.deepEqual(await askJson("Nothing fits.", option("red", "other")), { status: "other" });
  const mood = strict({ sentiment: { type: "string", enum: ["positive", "negative", "neutral"] } });
  assert.deepEqual(await askJson("I love it, a wonderful product!", mood), { sentiment: "positive" });
  assert.deepEqual(await askJson("It broke at once. Terrible, I hate it.", mood), { sentiment: "negative" });
  assert.deepEqual(await askJson("The parcel weighs two kilos.", mood), { sentiment: "neutral" });
});

test("flags from prose", async () => {
  const schema = strict({ is_paid: { type: "boolean" } });
  assert.deepEqual(await askJson("The invoice has been paid in full.", schema), { is_paid: true });
  assert.deepEqual(await askJson("The invoice has not been paid.", schema), { is_paid: false });
  assert.deepEqual(await askJson("The invoice is unpaid.", schema), { is_paid: false });
});

test("what is not found: null, left out, or the plainest value within the bounds", async () => {
  const schema = {
    type: "object",
    properties: {
      email: { type: ["string", "null"] },
      phone: string,
      total: { type: "number", minimum: 5 },
      code: { type: "string", minLength: 3, maxLength: 4 },
      tags: { type: "array", items: string },
      customer: { type: "object", properties: { email: string }, required: ["email"] },
      kind: { const: "letter" },
    },
    required: ["email", "total", "code", "tags"],
  };
  assert.deepEqual(await askJson("Nothing to see here.", schema), {
    email: null,
    total: 5,
    code: "unkn",
    tags: [],
    kind: "letter",
  });
});

test("a request that holds data itself", async () => {
  const text = "Can you book a table on 12 May 2026 for John Smith?\nThanks, john@x.example";
  const schema = strict({ date: string, name: string, email: string });
  assert.deepEqual(await askJson(text, schema), { date: "2026-05-12", name: "John Smith", email: "john@x.example" });
});

test("nested objects take the name of the object into account", async () => {
  const party = (extra: object) => strict({ name: string, email: string, ...extra });
  const text =
    "Vendor: Muster GmbH\nVendor email: sales@muster.example\nCustomer: Jane Doe\nCustomer email: jane@x.example";
  assert.deepEqual(await askJson(text, strict({ customer: party({}), vendor: party({}) })), {
    customer: { name: "Jane Doe", email: "jane@x.example" },
    vendor: { name: "Muster GmbH", email: "sales@muster.example" },
  });
});

test("summaries, titles, questions and arithmetic fill a schema too", async () => {
  const { title, summary } = (await askJson(ARTICLE, strict({ title: string, summary: string }))) as Record<
    string,
    string
  >;
  assert.match(title ?? "", /electric ferry/);
  assert.ok(summary && summary.length < ARTICLE.length / 2 && summary.includes("ferry"));
  assert.deepEqual(await askJson("What is 17 * 23 + 4?", strict({ answer: number })), { answer: 395 });
  assert.deepEqual(await askJson("What is 12% of 250?", strict({ result: string })), { result: "30" });
  assert.deepEqual(await askJson(`Who leads the project?\n\n${ARTICLE}`, strict({ answer: string })), {
    answer:
      "Professor Jonas Weber, who leads the project, expects that one in five car trips across the bridge will disappear within two years.",
  });
});

test("members keep the schema's order and any name", async () => {
  const properties = JSON.parse(
    '{"z":{"type":"string"},"2":{"type":"string"},"1":{"type":"string"},"__proto__":{"type":"string"}}',
  );
  const schema = { type: "object", properties, required: ["z", "2", "1", "__proto__"] };
  const answer = await ask("z: a\n", { responseFormat: { type: "json", schema } });
  assert.match(answer, /"__proto__":""/);
  const ordered = new Proxy(properties, { ownKeys: () => ["z", "2", "1", "__proto__"] });
  const inOrder = await ask("z: a\n", { responseFormat: { type: "json", schema: { ...schema, properties: ordered } } });
  assert.equal(inOrder, '{"z":"a","2":"","1":"","__proto__":""}');
});

test("ten levels of nested lists, and a schema as large as one may be, end soon", async () => {
  let nested: object = { type: "string", minLength: 3 };
  for (let level = 1; level < 10; level++) nested = { type: "array", items: nested, minItems: 3 };
  const wide = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`field${i}`, string]));
  const start = performance.now();
  await askJson(US_INVOICE, strict({ nested }));
  await askJson(ARTICLE.repeat(60), strict(wide));
  assert.ok(performance.now() - start < 3_000);
});

test("JSON without a schema: the members that the prompt names", async () => {
  const json = (prompt: string) => askJson(prompt);
  const person = "Jane Doe (jane@x.example) owes us $45.20.";
  const expected = { name: "Jane Doe", email: "jane@x.example", total: 45.2 };
  assert.deepEqual(await json(`Extract name, email and total as JSON: ${person}`), expected);
  assert.deepEqual(await json(`Return JSON with the keys name, email, total.\n\n${person}`), expected);
  assert.deepEqual(await json(`Return {"name": "...", "email": "...", "total": 0} for: ${person}`), expected);
  assert.deepEqual(await json(`Return JSON in this shape:\n{\n  "name": "",\n  "email": ""\n}\n\n${person}`), {
    name: "Jane Doe",
    email: "jane@x.example",
  });
  assert.deepEqual(await json(`${US_INVOICE}\n\nExtract the invoice number, the due date and all emails.`), {
    invoice_number: "INV-2041",
    due_date: "2026-04-13",
    emails: ["billing@acme.example"],
  });
  const system = "Return a JSON object with the fields name and email.";
  assert.deepEqual(await askJson(person, undefined, { system }), { name: "Jane Doe", email: "jane@x.example" });
});

test("JSON without a schema or names: what the task suggests", async () => {
  const { summary } = (await askJson(`Summarise as JSON.\n\n${ARTICLE}`)) as { summary: string };
  assert.match(summary, /electric ferry/);
  assert.deepEqual(await askJson("What is 2 + 2?"), { answer: 4 });
  assert.deepEqual(await askJson("What is the capital of France?"), { answer: null });
  const { emails, dates } = (await askJson(`Extract the entities.\n\n${PROSE_INVOICE}`)) as Record<string, string[]>;
  assert.deepEqual([emails, dates], [["accounts@northwind.example"], ["2026-05-03", "2026-06-02"]]);
});
