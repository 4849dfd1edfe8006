import { FilterChoice } from "../parts/filter-choice.tsx";
import { Mark } from "../shell/mark.tsx";
import { owners, type Session } from "./session.ts";

/** The name of the workspace. A person with several chooses one. */
export function WorkspaceName({ session: { workspace, workspaceId, workspaces } }: { session: Session }) {
  if (workspaces.length < 2) return <strong>{workspace}</strong>;
  const choose = (id: string) => {
    // The pages of the other workspace may have other data, filters and rights.
    owners.choose(id).finally(() => location.assign("/console"));
  };
  return (
    <FilterChoice
      label="Workspace"
      value={workspaceId}
      options={workspaces.map(({ id, name }) => [id, name])}
      change={choose}
    />
  );
}

/** Who is signed in, with the role. Nothing for a token. */
export function Account({ session: { person, role } }: { session: Session }) {
  if (!person) return null;
  return (
    <>
      <p class="small">
        {person.name || person.email || person.id}
        {role && <span class="soft"> · {role}</span>}
      </p>
      {person.operator && (
        <a class="small" href="/console/operator">
          Operator’s side
        </a>
      )}
    </>
  );
}

/** Tells a person who is a member of no workspace what to do. */
export function NoWorkspace({ session, leave }: { session: Session; leave: () => void }) {
  return (
    <main class="sign-in">
      <p class="wordmark">
        <Mark /> Chorus
      </p>
      <div class="card">
        <h1>You are a member of no workspace</h1>
        <p>
          Ask an owner of a workspace for an invitation. If a group of the identity provider gives you a role, sign out
          and sign in again.
        </p>
        <div class="account">
          <Account session={session} />
        </div>
        <div class="buttons start">
          <button type="button" onClick={leave}>
            Sign out
          </button>
        </div>
      </div>
    </main>
  );
}
