import { Card } from "../parts/card.tsx";
import { PagerButtons } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { CapTable } from "./cap-table.tsx";
import { useCaps } from "./use-caps.tsx";

interface Props {
  title: string;
  /** Whose caps are listed and set: such as `user:u-4711`, or `user:*` for those of all users. */
  subject: string;
  /** The subject in words, such as "each user". */
  whose: string;
  /** Names of subjects, such as of `key:key_7f`; others are shown as they are. */
  names?: ReadonlyMap<string, string>;
}

/** Lists caps with their use, and sets and clears them. */
export function CapCard({ title, subject, whose, names }: Props) {
  const { list, pager, clear, button, dialogs } = useCaps(subject, whose);
  return (
    <Card title={title} actions={button} flush>
      <Pending of={list} what="caps" skeleton={<Skeleton tall="8rem" />}>
        {({ caps: found, next }) => (
          <>
            <CapTable found={found} names={names} clear={clear} />
            <PagerButtons pager={pager} next={next} words={["Back", "Next"]} />
          </>
        )}
      </Pending>
      {dialogs}
    </Card>
  );
}
