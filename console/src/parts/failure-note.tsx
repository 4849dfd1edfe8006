import { describe } from "../failure.ts";
import { pathOf } from "../route.ts";
import { Link } from "./link.tsx";

/** Says what went wrong and what to do. @param retry what "Try again" does; without it there is no such button */
export function FailureNote({ error, retry }: { error: unknown; retry?: () => void }) {
  const { title, text, code, field, requestId } = describe(error);
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{title}.</strong> {text}
      </p>
      {field && (
        <p class="small">
          Field: <code>{field}</code>
        </p>
      )}
      {code === "spend_limit_reached" && (
        <p>
          It was set by the owner, under <Link to={pathOf("limits", {}, "spend")}>Limits and spend → Spend limits</Link>
          , and can be changed there.
        </p>
      )}
      {code === "insufficient_credit" && (
        <p>
          What is left, and what went where: <Link to={pathOf("ledger")}>Ledger</Link>.
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
      {requestId && <p class="soft small">Request {requestId}</p>}
    </div>
  );
}
