import { describe } from "../failure.ts";
import { pathOf } from "../route.ts";
import { Link } from "./link.tsx";

/** Shows an error and what to do. @param retry action of the button "Try again"; without it there is no button */
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
          The owner can change it under <Link to={pathOf("limits", {}, "spend")}>Limits and spend → Spend limits</Link>.
        </p>
      )}
      {code === "insufficient_credit" && (
        <p>
          See the balance and its movements: <Link to={pathOf("ledger")}>Ledger</Link>.
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
