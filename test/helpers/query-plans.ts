import pg from "pg";

/** One node of a plan that reads a table or an index, and was executed. */
export interface Scan {
  /** `Seq Scan`, `Index Scan`, … */
  type: string;
  table: string;
  index: string | undefined;
  /** Search condition of the index. */
  condition: string;
  /** Rows that each execution has returned. */
  rows: number;
}

/** An executed statement, which may be inside a function, and its scans. */
export interface Plan {
  statement: string;
  scans: Scan[];
}

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Index Cond"?: string;
  "Actual Loops"?: number;
  "Actual Rows"?: number;
  Plans?: PlanNode[];
}

/** Columns of this type are bigint, as the pool returns them. */
const INT8 = 20;

/**
 * Runs statements on a separate connection and returns the executed plan of each, including those inside functions.
 * Needs a superuser for Postgres's module auto_explain.
 */
export async function plansOf(url: string, run: (client: pg.Client) => Promise<void>): Promise<Plan[]> {
  const getTypeParser = (oid: number, format?: "text" | "binary") =>
    oid === INT8 ? BigInt : pg.types.getTypeParser(oid, format ?? "text");
  const types = { getTypeParser: getTypeParser as typeof pg.types.getTypeParser };
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  const plans: Plan[] = [];
  client.on("notice", ({ message = "" }) => {
    const start = message.indexOf("plan:\n{");
    if (start < 0) return;
    const { "Query Text": statement, Plan: root } = JSON.parse(message.slice(start + 6)) as {
      "Query Text": string;
      Plan: PlanNode;
    };
    plans.push({ statement, scans: scansOf(root) });
  });
  try {
    await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0;
      set auto_explain.log_nested_statements = on; set auto_explain.log_analyze = on;
      set auto_explain.log_timing = off; set auto_explain.log_format = json; set client_min_messages = log`);
    await run(client);
  } finally {
    await client.end();
  }
  return plans;
}

function scansOf(node: PlanNode): Scan[] {
  // A bitmap heap scan has the table; the index scan below it has the index.
  const { "Node Type": type, "Relation Name": table, "Index Name": index, "Index Cond": condition = "" } = node;
  const { "Actual Rows": rows = 0 } = node;
  const below = (node.Plans ?? []).flatMap(scansOf);
  if (node["Actual Loops"] === 0) return [];
  if (type === "Bitmap Heap Scan") return below.map((scan) => ({ ...scan, table: table ?? "" }));
  const isScan = type.endsWith("Scan") && (table !== undefined || index !== undefined);
  return isScan ? [{ type, table: table ?? "", index, condition, rows }, ...below] : below;
}
