import { KeyRound, Plus } from "lucide";
import { useState } from "preact/hooks";
import { type Key, KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { CapCard } from "../caps/cap-card.tsx";
import { capsHaveChanged } from "../caps/use-caps.tsx";
import { describe } from "../failure.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { keyLabels } from "../parts/key-labels.ts";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Search } from "../parts/search.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { narrow, useRoute } from "../route.ts";
import { keys } from "../rpc.ts";
import { can } from "../session/session.ts";
import { ChangeKey } from "./change-key.tsx";
import { CreateKey } from "./create-key.tsx";
import { KeyCaps } from "./key-caps.tsx";
import { KeyTable } from "./key-table.tsx";
import { RevokeKey } from "./revoke-key.tsx";
import { RotateKey } from "./rotate-key.tsx";

type Open = { what: "create" } | { what: "caps" | "change" | "rotate" | "revoke"; key: Key } | undefined;

/** Creates, finds, renames, caps, rotates and revokes keys. */
export function KeysPage() {
  const { query } = useRoute();
  const search = query.get("search") ?? "";
  const activeOnly = query.get("all") === null;
  const [open, setOpen] = useState<Open>();
  const of = `${search} ${activeOnly}`;
  const pager = usePager(of);
  const list = useLoad(
    (signal) => keys.listKeys({ search, activeOnly, withUse: true, pageSize: 50, pageToken: pager.token }, { signal }),
    `${of} ${pager.token}`,
  );
  const close = () => setOpen(undefined);
  const changed = () => {
    list.reload();
    capsHaveChanged();
  };
  const done = (sentence: string) => {
    toast(sentence);
    close();
    changed();
  };
  const takeOver = (key: Key) => void takeOverKey(key).then(done, list.reload);

  return (
    <>
      <PageHead
        title="Keys"
        lead="Programs call the service with a key. All keys of the workspace share its credit and its limits."
      >
        <Create open={() => setOpen({ what: "create" })} />
      </PageHead>
      <div class="toolbar">
        <Search value={search} placeholder="Find by name or secret" />
        <label class="check">
          <input
            type="checkbox"
            checked={!activeOnly}
            onChange={(event) => narrow({ all: event.currentTarget.checked ? "1" : undefined })}
          />
          Show revoked and expired keys
        </label>
      </div>
      <Card flush>
        <Pending of={list} what="keys" skeleton={<Skeleton tall="20rem" />}>
          {({ keys: page, nextPageToken }) => (
            <>
              {page.length === 0 ? (
                <NoKeys search={search} />
              ) : (
                <KeyTable
                  keys={page}
                  showCaps={(key) => setOpen({ what: "caps", key })}
                  change={(key) => setOpen({ what: "change", key })}
                  rotate={(key) => setOpen({ what: "rotate", key })}
                  revoke={(key) => setOpen({ what: "revoke", key })}
                  takeOver={takeOver}
                />
              )}
              <PagerButtons pager={pager} next={nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
      <CapCard title="Caps of keys" subject="key:*" whose="each key" names={namesOf(list.data?.keys ?? [])} />
      {open && <Opened open={open} close={close} done={done} changed={changed} />}
    </>
  );
}

interface OpenedProps {
  open: NonNullable<Open>;
  close: () => void;
  done: (sentence: string) => void;
  /** Called when a key was made, whose secret is still shown. */
  changed: () => void;
}

function Opened({ open, close, done, changed }: OpenedProps) {
  if (open.what === "create") return <CreateKey close={close} done={done} created={changed} />;
  const { what, key: of } = open;
  if (what === "caps") return <KeyCaps of={of} close={close} />;
  if (what === "change") return <ChangeKey of={of} close={close} done={done} />;
  if (what === "rotate") return <RotateKey of={of} close={close} done={done} changed={changed} />;
  return <RevokeKey of={of} close={close} done={done} />;
}

function Create({ open }: { open: () => void }) {
  if (!can(KeyService.method.createKey)) return null;
  return (
    <button type="button" class="primary" onClick={open}>
      <Icon of={Plus} />
      Create a key
    </button>
  );
}

/** Tells the person when that fails. @returns a sentence that says what happened */
async function takeOverKey({ id, name, prefix, holder }: Key): Promise<string> {
  try {
    await keys.takeOverKey({ id });
  } catch (error) {
    toast(`Not taken over. ${describe(error).text}`, "bad");
    throw error;
  }
  return `The key ${name || prefix} no longer ends with ${holder?.name || "its holder"}.`;
}

function namesOf(page: readonly Key[]): ReadonlyMap<string, string> {
  const named = page.map(({ id, name, prefix }) => ({ id, keyName: name || `${prefix}…`, keyPrefix: prefix }));
  return keyLabels(named, ({ id }) => `key:${id}`);
}

function NoKeys({ search }: { search: string }) {
  return search ? (
    <Empty title="No key matches.">
      <p>
        The search compares the start of names and secrets. Revoked and expired keys are only found while they are
        shown.
      </p>
    </Empty>
  ) : (
    <Empty title="There is no key yet." icon={KeyRound}>
      <p>Create one; its secret is shown once, with a line to try it.</p>
    </Empty>
  );
}
