import { useState } from "preact/hooks";
import { LimitName, LimitNameSchema, type Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Copy } from "../parts/copy.tsx";
import { Detail } from "../parts/details.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Link } from "../parts/link.tsx";
import { Note } from "../parts/note.tsx";
import { Pending } from "../parts/pending.tsx";
import { go } from "../route.ts";
import { ActionForm } from "./action-form.tsx";
import { bookingSentence, limitOverride } from "./changes.ts";
import { addressOf } from "./pages.ts";
import { credits, workspaces } from "./rpc.ts";

interface Props {
  name: string;
  close: () => void;
  /** Called after a change. */
  changed: () => void;
}

/** A workspace, and what an operator can do with it. */
export function WorkspaceDrawer({ name, close, changed }: Props) {
  const loaded = useLoad((signal) => workspaces.getWorkspace({ workspace: name }, { signal }), name);
  const update = () => {
    loaded.reload();
    changed();
  };
  return (
    <Dialog title={name} kind="drawer" close={close}>
      <Pending of={loaded} what="the workspace">
        {({ workspace }) => workspace && <Facts of={workspace} />}
      </Pending>
      <SignInLink name={name} />
      <Booking name={name} update={update} />
      <ActionForm
        title="Tier"
        action="Set the tier"
        inputs={[
          { name: "tier", label: "Tier", help: "Empty: the one that follows from the purchases", optional: true },
        ]}
        run={async ({ tier = "" }) => {
          const { workspace } = await workspaces.setTier({ workspace: name, tier });
          update();
          return `The tier is ${workspace?.tier}.`;
        }}
      />
      <ActionForm
        title="Limits"
        action="Set the limit"
        inputs={[
          { name: "limit", label: "Limit", options: LIMITS },
          {
            name: "value",
            label: "Value",
            help: "A number, none, or default for the limit of the tier",
            pattern: "\\d{1,15}|none|default",
          },
        ]}
        run={async ({ limit = "", value = "" }) => {
          await workspaces.setLimits({ workspace: name, overrides: [limitOverride(limit, value)] });
          update();
          return `Set ${words(limit)}.`;
        }}
      />
      <ActionForm
        title="A request"
        action="Show how it was answered"
        inputs={[
          {
            name: "id",
            label: "Generation",
            help: "Its identifier (gen_…) is in the answer, in the log as generation_id and in traces",
            pattern: "gen_[0-9a-z]+",
          },
        ]}
        run={async ({ id = "" }) => {
          go(addressOf(`runs/${id}`, { workspace: name }));
          return "";
        }}
      />
      <p>
        <Link to={addressOf("audit", { workspace: name })}>Audit log of this workspace</Link>
      </p>
    </Dialog>
  );
}

const LIMITS = LimitNameSchema.values
  .filter(({ number }) => number !== LimitName.UNSPECIFIED)
  .map(({ number }) => wordOf(LimitNameSchema, number))
  .map((word): [string, string] => [word, words(word)]);

function Facts({ of }: { of: Workspace }) {
  const overridden = new Set(of.overriddenLimits);
  return (
    <dl class="details">
      <Detail name="Identifier" copy={of.id}>
        <code>{of.id}</code>
      </Detail>
      <Detail name="Created">{timeText(of.createdAt)}</Detail>
      <Detail name="Tier">
        {of.tier} {of.tierOverridden && <span class="tag">set by an operator</span>}
      </Detail>
      <Detail name="Granted">{amount(of.granted)}</Detail>
      <Detail name="Purchased">{amount(of.purchased)}</Detail>
      <Detail name="Purchased in total">{amount(of.purchasedTotal)}</Detail>
      <Detail name="Held">{amount(of.held)}</Detail>
      <Detail name="Running requests">{of.running}</Detail>
      {of.limits.map(({ name, value }) => (
        <Detail key={name} name={words(wordOf(LimitNameSchema, name))}>
          {count(value)} {overridden.has(name) && <span class="tag">set by an operator</span>}
        </Detail>
      ))}
    </dl>
  );
}

function Booking({ name, update }: { name: string; update: () => void }) {
  return (
    <ActionForm
      title="Credit"
      action="Book"
      inputs={[
        { name: "kind", label: "Kind", options: KINDS },
        { name: "amount", label: "Credits" },
        { name: "reference", label: "Reference", help: "Such as the number of an invoice. Each is booked once." },
      ]}
      run={async ({ kind, amount: text = "", reference = "" }) => {
        const request = { workspace: name, amount: text, reference };
        const { booking } =
          kind === "purchase"
            ? await credits.purchase(request)
            : kind === "grant"
              ? await credits.grant(request)
              : await credits.deduct(request);
        update();
        return bookingSentence(booking);
      }}
    />
  );
}

const KINDS = [
  ["purchase", "Purchase"],
  ["grant", "Grant"],
  ["deduct", "Take granted credit back"],
] as const;

function SignInLink({ name }: { name: string }) {
  const [url, setUrl] = useState("");
  return (
    <>
      <ActionForm
        title="Sign-in link for the owner"
        action="Create a link"
        inputs={[]}
        run={async () => {
          const { path } = await workspaces.createSignInLink({ workspace: name });
          setUrl(new URL(path, location.origin).href);
          return "";
        }}
      />
      {url && (
        <Note role="status">
          It signs in one browser, once, within 15 minutes. <Copy text={url} label="Copy the link" />
        </Note>
      )}
    </>
  );
}
