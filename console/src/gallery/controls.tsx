import { Download, Plus, Trash2 } from "lucide";
import { useState } from "preact/hooks";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Detail } from "../parts/details.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { Field } from "../parts/field.tsx";
import { Icon } from "../parts/icon.tsx";
import { Segments } from "../parts/segments.tsx";
import { toast } from "../parts/toasts.tsx";

const SPANS = [
  ["day", "Day"],
  ["week", "Week"],
  ["month", "Month"],
] as const;

/** Buttons, forms, dialogs, drawers and toasts. */
export function Controls() {
  const [open, setOpen] = useState<"dialog" | "drawer">();
  const close = () => setOpen(undefined);
  return (
    <>
      <Buttons />
      <Card title="Form" class="gallery">
        <Fields />
      </Card>
      <Card title="Dialog, drawer and toast" class="gallery">
        <div class="buttons start">
          <button type="button" onClick={() => setOpen("dialog")}>
            Open a dialog
          </button>
          <button type="button" onClick={() => setOpen("drawer")}>
            Open a drawer
          </button>
          <button type="button" onClick={() => toast("Saved the spend limit.")}>
            Show a toast
          </button>
          <button type="button" onClick={() => toast("The file could not be read.", "bad")}>
            Show a failure
          </button>
        </div>
      </Card>
      {open && (
        <Dialog title={open === "dialog" ? "A dialog" : "A drawer"} kind={open} close={close}>
          <dl class="details">
            <Detail name="Request" copy="req_7h3n9qx2">
              <code>req_7h3n9qx2</code>
            </Detail>
            <Detail name="Level">high</Detail>
          </dl>
          <DialogButtons close={close} action="Done" run={close} />
        </Dialog>
      )}
    </>
  );
}

function Buttons() {
  const [span, setSpan] = useState<(typeof SPANS)[number][0]>("week");
  return (
    <Card title="Buttons and choices" class="gallery">
      <div class="buttons start">
        <button type="button" class="primary">
          <Icon of={Plus} />
          Primary
        </button>
        <button type="button">
          <Icon of={Download} />
          Default
        </button>
        <button type="button" class="quiet">
          Quiet
        </button>
        <button type="button" class="quiet danger">
          <Icon of={Trash2} />
          Danger
        </button>
        <button type="button" class="primary danger">
          Confirm
        </button>
        <button type="button" class="primary" disabled>
          Disabled
        </button>
        <button type="button" disabled>
          Disabled
        </button>
        <button type="button" class="small">
          Small
        </button>
        <button type="button" class="link">
          Link
        </button>
        <Copy text="copied" />
      </div>
      <Segments legend="Period" name="gallery-period" value={span} options={SPANS} change={setSpan} />
    </Card>
  );
}

function Fields() {
  return (
    <div class="cards">
      <Field id="g-text" label="Name" help="Shown in lists and charts.">
        <input id="g-text" type="text" placeholder="What will use it?" />
      </Field>
      <Field id="g-wrong" label="Wrong">
        <input id="g-wrong" type="text" value="ten" aria-invalid="true" />
        <p class="wrong">Write a number, such as 250 or 0.5.</p>
      </Field>
      <Field id="g-affix" label="Daily limit">
        <span class="affix">
          <input id="g-affix" type="text" value="60" />
          <span>credits</span>
        </span>
      </Field>
      <Field id="g-select" label="Expires">
        <select id="g-select">
          <option>Never</option>
        </select>
      </Field>
      <Field id="g-area" label="Prompt">
        <textarea id="g-area" rows={2} />
      </Field>
      <fieldset class="field">
        <legend>Scopes</legend>
        <label class="check">
          <input type="checkbox" checked /> Generate <span class="soft">sends prompts</span>
        </label>
        <label class="check">
          <input type="checkbox" /> Metrics <span class="soft">reads limits and usage</span>
        </label>
      </fieldset>
    </div>
  );
}
