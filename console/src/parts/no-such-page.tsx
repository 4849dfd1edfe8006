import { Empty } from "./empty.tsx";
import { PageHead } from "./page-head.tsx";

/** The page at an address that has none. */
export function NoSuchPage() {
  return (
    <>
      <PageHead title="Page not found" />
      <Empty title="There is no page at this address.">
        <p>Choose a page in the navigation.</p>
      </Empty>
    </>
  );
}
