import { useState } from "preact/hooks";
import { LimitName, LimitNameSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Note } from "../parts/note.tsx";
import { ActionForm } from "./action-form.tsx";
import { bookingSentence, limitOverride } from "./changes.ts";
import { credits, workspaces } from "./rpc.ts";

interface Props {
  name: string;
  /** Called after a change. */
  changed: () => void;
}

/** What an operator can do with a workspace: book credit, set its tier and limits, and let its owner in. */
export function WorkspaceActions({ name, changed }: Props) {
  return (
    <section class="part">
      <h2 class="hidden">Change</h2>
      <div class="cards four">
        <Card>
          <Booking name={name} changed={changed} />
        </Card>
        <Card>
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
              changed();
              return `Set ${words(limit)}.`;
            }}
          />
        </Card>
        <Card>
          <ActionForm
            title="Tier"
            action="Set the tier"
            inputs={[
              { name: "tier", label: "Tier", help: "Empty: the one that follows from the purchases", optional: true },
            ]}
            run={async ({ tier = "" }) => {
              const { workspace } = await workspaces.setTier({ workspace: name, tier });
              changed();
              return `The tier is ${workspace?.tier}.`;
            }}
          />
        </Card>
        <Card>
          <SignInLink name={name} />
        </Card>
      </div>
    </section>
  );
}

const LIMITS = LimitNameSchema.values
  .filter(({ number }) => number !== LimitName.UNSPECIFIED)
  .map(({ number }) => wordOf(LimitNameSchema, number))
  .map((word): [string, string] => [word, words(word)]);

function Booking({ name, changed }: Props) {
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
        changed();
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
