/** Asks for the identifier of a request or its answer. @param open called with it */
export function FindRun({ open }: { open: (id: string) => void }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const id = new FormData(event.currentTarget).get("id");
        if (typeof id === "string") open(id.trim());
      }}
    >
      <input
        type="search"
        name="id"
        aria-label="Open a request by its identifier"
        placeholder="Open gen_… or req_…"
        pattern="\s*(gen|req)_[0-9a-f]{32}\s*"
        title="The identifier of an answer or a request: gen_ or req_, and 32 digits"
        required
      />
    </form>
  );
}
