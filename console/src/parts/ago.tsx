import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useEffect, useState } from "preact/hooks";
import { ago, iso, timeText } from "../format.ts";

const DAY_MS = 86_400_000;

/** A time of the last day as the time since then, an older one as it is. The exact time is in its title. */
export function Ago({ at }: { at: Timestamp | undefined }) {
  if (!at) return null;
  const isRecent = Date.now() - timestampDate(at).getTime() < DAY_MS;
  return (
    <time datetime={iso(at)} title={`${timeText(at)} UTC`}>
      {isRecent ? ago(at) : timeText(at)}
    </time>
  );
}

/** Renders a component again every half minute, because it shows how long ago times are. */
export function useAgo(): void {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
}
