import { KeyRound } from "lucide";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { FillTag, Meter } from "../parts/meter.tsx";
import { Note } from "../parts/note.tsx";
import { Skeleton } from "../parts/skeleton.tsx";

/** Notes, tags, meters, and the states of a card: empty, loading, failed. */
export function Messages() {
  return (
    <>
      <Card title="Notes, tags and meters" class="gallery">
        <Note>You have signed out.</Note>
        <Note tone="warn">
          <p>
            <strong>Store it now.</strong> The service cannot show it again.
          </p>
        </Note>
        <Note tone="bad">
          <p>
            <strong>A spend limit is reached.</strong> Raise it, or wait until tomorrow.
          </p>
          <button type="button" class="small">
            Try again
          </button>
        </Note>
        <p class="chips">
          <span class="tag">settlement</span>
          <span class="tag good">stop</span>
          <span class="tag warn">cut short</span>
          <span class="tag bad">upstream_failed</span>
          <FillTag fill="half" />
          <FillTag fill="near" />
          <FillTag fill="full" />
          <span class="chip">generate</span>
        </p>
        <Meter label="A third" used={1} limit={3} />
        <Meter label="Over half" used={2} limit={3} />
        <Meter label="Reached" used={3} limit={3} />
      </Card>
      <div class="cards">
        <Card title="Empty">
          <Empty title="There is no key yet." icon={KeyRound}>
            <p>Create one; its secret is shown once.</p>
          </Empty>
        </Card>
        <Card title="Loading">
          <Skeleton lines={6} />
        </Card>
      </div>
    </>
  );
}
