import { describe } from "../failure.ts";
import { pathOf } from "../route.ts";
import { Link } from "./link.tsx";
import { Note } from "./note.tsx";

interface Props {
  error: unknown;
  /** Replaces the title of the failure. */
  title?: string;
  /** Action of the button "Try again"; without it there is no button. */
  retry?: () => void;
}

/** Shows an error and what to do. */
export function FailureNote({ error, title: own, retry }: Props) {
  const { title, text, code, field, requestId } = describe(error);
  return (
    <Note tone="bad" role="alert">
      {own && (
        <p>
          <strong>{own}</strong>
        </p>
      )}
      <p>
        {own ? `${title}.` : <strong>{title}.</strong>} {text}
      </p>
      {field && (
        <p class="small">
          Field: <code>{field}</code>
        </p>
      )}
      {code === "spend_limit_reached" && (
        <p>
          The owner can change it under <Link to={pathOf("limits", {}, "spend")}>Limits and spend</Link>.
        </p>
      )}
      {code === "insufficient_credit" && (
        <p>
          See the balance and its movements: <Link to={pathOf("ledger")}>Ledger</Link>.
        </p>
      )}
      {retry && (
        <button type="button" class="small" onClick={retry}>
          Try again
        </button>
      )}
      {requestId && <p class="soft small">Request {requestId}</p>}
    </Note>
  );
}
