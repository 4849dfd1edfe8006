import type { Cap } from "../../../gen/chorus/admin/v1/caps_pb.js";
import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { CapAction } from "../../../gen/chorus/v1/generation_pb.js";
import { hasEnded, isTemplate } from "../caps/list.ts";
import { useCaps } from "../caps/use-caps.tsx";
import { amountOf, nameOf } from "../caps/words.ts";
import { timeText } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";

/** The caps of a key in a drawer: its own, and those of each key. Sets and clears its own. */
export function KeyCaps({ of: key, close }: { of: Key; close: () => void }) {
  const { list, clear, button, dialogs } = useCaps(`key:${key.id}`, "this key");
  return (
    <Dialog title={`Caps of ${key.name || "Unnamed"}`} kind="drawer" close={close}>
      <p class="soft">
        A cap limits what the key may use, in addition to the limits of the workspace. <code>{key.id}</code>
      </p>
      <Pending of={list} what="caps" skeleton={<Skeleton tall="8rem" />}>
        {({ caps }) => (
          <>
            {caps.length === 0 && <p>This key has no cap.</p>}
            <ul class="caps">
              {caps.map((cap) => (
                <Row
                  key={cap.id || `${cap.figure} ${cap.period} ${cap.action}`}
                  of={cap}
                  clear={clear && (() => clear(cap))}
                />
              ))}
            </ul>
          </>
        )}
      </Pending>
      <div class="buttons start">{button}</div>
      {dialogs}
    </Dialog>
  );
}

function Row({ of: cap, clear }: { of: Cap; clear: (() => void) | undefined }) {
  const { figure, period, amount, used = "0", endsAt } = cap;
  const name = nameOf(figure, period);
  const [value, limit] = [Number(used), Number(amount)];
  return (
    <li class="limit">
      <p>
        <strong>{name}</strong>
        {hasEnded(cap) ? <span class="tag">ended</span> : <FillTag fill={fillOf(value, limit)} />}
        <span class="figure">{`${amountOf(figure, used)} of ${amountOf(figure, amount)}`}</span>
      </p>
      <Meter used={value} limit={limit} label={name} />
      <p class="soft small">
        <span>
          {isTemplate(cap.subject) && "Cap of each key. "}
          {cap.action === CapAction.LOW ? "Then answers have low effort." : "Then requests are refused."}
          {endsAt && !hasEnded(cap) && ` Until ${timeText(endsAt).slice(0, 16)}.`}
        </span>
        {cap.id !== "" && clear && (
          <button type="button" class="quiet small danger figure" aria-label={`Clear ${name}`} onClick={clear}>
            Clear
          </button>
        )}
      </p>
    </li>
  );
}
