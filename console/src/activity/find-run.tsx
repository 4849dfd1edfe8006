import { go, pathOf } from "../route.ts";

/** Opens the run of a request by its identifier. */
export function FindRun() {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const id = new FormData(event.currentTarget).get("id");
        if (typeof id === "string") go(pathOf(`runs/${id.trim()}`));
      }}
    >
      <input
        type="search"
        name="id"
        aria-label="Open a request by its identifier"
        placeholder="Open gen_…"
        pattern="\s*gen_[0-9a-f]{32}\s*"
        title="The identifier of an answer: gen_ and 32 digits"
        required
      />
    </form>
  );
}
