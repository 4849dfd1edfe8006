import { Download } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import { USAGE_FORMATS, type UsageFormat, usageLines } from "../../../src/contract/usage-file.ts";
import { openFile } from "../file.ts";
import { count, day } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Icon } from "../parts/icon.tsx";
import { boundsOf, type Period, still } from "../parts/period.tsx";
import { Segments } from "../parts/segments.tsx";
import { TextField } from "../parts/text-field.tsx";
import { usage } from "../rpc.ts";
import { fieldsOf, type Group, pluralOf, tagOf } from "./group.ts";

const LABELS: Record<UsageFormat, string> = { csv: "CSV", jsonl: "JSON lines", focus: "FOCUS 1.3" };

const TYPES: Record<UsageFormat, readonly [ending: string, type: string]> = {
  csv: ["csv", "text/csv;charset=utf-8"],
  jsonl: ["jsonl", "application/jsonl;charset=utf-8"],
  focus: ["csv", "text/csv;charset=utf-8"],
};

/** A credit is one unit of no currency. */
const IN_CREDITS = { currency: "XXX", price: "1" };

interface Props {
  period: Period;
  group: Group;
}

/** A button that asks for a format and exports use by day to a file, of any length. */
export function ExportUsage({ period, group }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        <Icon of={Download} />
        Export
      </button>
      {open && (
        <Dialog title="Export usage" close={() => setOpen(false)}>
          <ExportForm period={period} group={group} close={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

function ExportForm({ period, group, close }: Props & { close: () => void }) {
  const [format, setFormat] = useState<UsageFormat>("csv");
  const [currency, setCurrency] = useState("");
  const [price, setPrice] = useState("");
  const { busy, message, error, run, stop } = useExport();
  const submit = (event: Event) => {
    event.preventDefault();
    const costs = currency || price ? { currency: currency.trim(), price: price.trim() } : IN_CREDITS;
    void run({ period, group, format, ...costs });
  };
  const last = day(new Date((period.to ?? new Date()).getTime() - 1));
  return (
    <form class="form" onSubmit={submit}>
      <p>
        One row for each day from {day(period.from)} to {last} (UTC) and each of the {pluralOf(group)}. The credits of
        all rows are those of the ledger.
      </p>
      <Segments
        legend="Format"
        titled
        name="format"
        value={format}
        options={USAGE_FORMATS.map((one) => [one, LABELS[one]] as const)}
        change={setFormat}
      />
      {format === "focus" && <Costs currency={currency} setCurrency={setCurrency} price={price} setPrice={setPrice} />}
      {error !== undefined && <FailureNote error={error} />}
      <p role="status" class="soft">
        {message}
      </p>
      <div class="buttons">
        <button type="button" onClick={busy ? stop : close}>
          {busy ? "Stop" : "Close"}
        </button>
        <button type="submit" class="primary" disabled={busy} data-autofocus>
          {busy ? "Saving…" : "Save the file"}
        </button>
      </div>
    </form>
  );
}

interface CostsProps {
  currency: string;
  setCurrency: (currency: string) => void;
  price: string;
  setPrice: (price: string) => void;
}

/** A currency and the price of a credit in it, or neither: without its price, a credit would count as one unit. */
function Costs({ currency, setCurrency, price, setPrice }: CostsProps) {
  return (
    <div class="cards">
      <TextField
        id="currency"
        label="Currency of the costs"
        help="ISO 4217. Without it, the costs are credits."
        required={price !== ""}
        pattern="[A-Z]{3}"
        title="Three capital letters, such as USD"
        value={currency}
        change={setCurrency}
      />
      <TextField
        id="price"
        label="Price of a credit"
        help="In this currency."
        inputMode="decimal"
        required={currency !== ""}
        pattern="\d{1,9}(\.\d{1,9})?"
        title="An amount, such as 0.01"
        value={price}
        change={setPrice}
      />
    </div>
  );
}

interface Export extends Props {
  format: UsageFormat;
  currency: string;
  price: string;
}

function useExport() {
  const [state, setState] = useState<{ busy: boolean; message: string; error?: unknown }>({ busy: false, message: "" });
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const run = async (of: Export) => {
    const leaving = new AbortController();
    running.current = leaving;
    setState({ busy: true, message: "" });
    try {
      const progress = (rows: number) => setState({ busy: true, message: `${count(rows)} rows…` });
      setState({ busy: false, message: await saveUsage(of, progress, leaving.signal) });
    } catch (error) {
      if (leaving.signal.aborted) setState({ busy: false, message: "Stopped; nothing was saved." });
      else setState({ busy: false, message: "", error });
    }
  };
  return { ...state, error: state.error, run, stop: () => running.current?.abort() };
}

/** Writes page after page to a file, so that its length does not matter. @returns a sentence about the result */
async function saveUsage(of: Export, progress: (rows: number) => void, signal: AbortSignal): Promise<string> {
  const { group, format, currency, price } = of;
  const period = still(of.period);
  const [ending, type] = TYPES[format];
  const file = await openFile(`chorus-usage-${day(period.from)}.${ending}`, type);
  if (!file) return "Nothing was saved.";
  const member = group === "key" ? undefined : tagOf(group) || "user";
  let rows = 0;
  let pageToken = "";
  try {
    do {
      const request = { ...boundsOf(period), ...fieldsOf(group), pageSize: 1_000, pageToken };
      const page = await usage.exportUsage(request, { signal });
      await file.write(usageLines(page, { format, member, currency, price }, pageToken === ""));
      rows += page.rows.length;
      progress(rows);
      ({ nextPageToken: pageToken } = page);
    } while (pageToken !== "");
  } catch (error) {
    await file.abort();
    throw error;
  }
  await file.close();
  if (rows === 0) return "There is no usage in this period; the file has no rows.";
  return `The file has ${count(rows)} ${rows === 1 ? "row" : "rows"}.`;
}
