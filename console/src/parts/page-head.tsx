import type { ComponentChildren } from "preact";

/** The title of a page, with its actions at the right. @param lead what the page shows, if the title does not say it */
export function PageHead({ title, lead, children }: { title: string; lead?: string; children?: ComponentChildren }) {
  return (
    <div class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </div>
  );
}
