interface Props {
  /** Number of lines; without it, one block. */
  lines?: number;
  /** Height of a block, as a CSS length. */
  tall?: string;
}

/** The place of content that is loading, in its later size, so that the page does not jump. */
export function Skeleton({ lines, tall }: Props) {
  return (
    <div
      class={lines === undefined ? "skeleton block" : "skeleton"}
      style={tall ? { "--tall": tall } : {}}
      aria-hidden="true"
    >
      {Array.from({ length: lines ?? 1 }, (_, i) => (
        // The index identifies a line
        <span key={i} />
      ))}
    </div>
  );
}
