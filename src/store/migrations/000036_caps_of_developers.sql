-- Whether a developer set a cap. It can then only lower what owners set; see functions/caps_of.sql.
alter table caps add column by_developer boolean not null default false;
update caps c set by_developer = true from members m
where m.workspace_id = c.workspace_id and m.person_id = c.created_by and m.role = 'developer';
