//! A configuration with every setting in it, each with a word on what it does and what holds
//! without it. The same text is what `config get` takes the defaults from.

use std::sync::LazyLock;

use toml::Table;

use super::{budget, compaction, hooks, limits, memory, policy, sandbox, shape, skills, web};

/// A new `config.toml`, in which nothing is set yet. Each part brings its own settings.
pub(crate) static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        include_str!("template.toml"),
        policy::TEMPLATE,
        sandbox::TEMPLATE,
        skills::TEMPLATE,
        shape::DELEGATE,
        compaction::TEMPLATE,
        budget::TEMPLATE,
        limits::TEMPLATE,
        shape::KEEPER,
        shape::SHELL,
        web::TEMPLATE,
        memory::TEMPLATE,
        hooks::TEMPLATE,
    ];
    parts.concat()
});

/// What holds where nobody says anything.
pub(crate) fn defaults() -> Table {
    let lines = TEMPLATE.lines().filter_map(|line| match said_by_comment(line) {
        Some(setting) => Some(setting),
        None => line.starts_with('[').then_some(line),
    });
    // The test below reads it: it is ours.
    lines.collect::<Vec<_>>().join("\n").parse().unwrap_or_default()
}

/// The setting in a line such as `#turn_usd = 10.0`.
pub(super) fn said_by_comment(line: &str) -> Option<&str> {
    let setting = line.strip_prefix('#')?;
    setting.starts_with(|letter: char| letter.is_ascii_lowercase()).then_some(setting)
}

#[cfg(test)]
mod tests {
    use mainstay_agent::Settings;

    use super::super::layers::at;
    use super::super::shape::{File, KnownKeys};
    use super::super::{Config, Overrides, agent_settings};
    use super::*;

    #[test]
    fn a_new_file_sets_nothing_and_says_every_setting() {
        let file: Table = TEMPLATE.parse().unwrap();
        assert_eq!(File::unknown_keys(&file), [""; 0]);
        assert!(file.values().all(|part| part.as_table().is_some_and(Table::is_empty)), "{file}");

        let defaults = defaults();
        assert_eq!(File::unknown_keys(&defaults), [""; 0]);
        let mut missing = shape::names();
        missing.retain(|name| {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            let example = format!("# for example: {} = ", path[path.len() - 1]);
            at(&defaults, &path).is_none() && !TEMPLATE.contains(&example)
        });
        assert_eq!(missing, [""; 0], "say these in the template of their part");
    }

    #[test]
    fn what_the_file_calls_a_default_is_one() {
        let told = |table: Table| {
            let mut table = table;
            table.insert("model".to_owned(), "ollama/x".into());
            let config = Config { file: table.try_into().unwrap(), ..Config::default() };
            let settings = agent_settings(&config, &Overrides::default()).unwrap();
            let grace = config.keeper_grace().unwrap();
            let asking = &settings.asking;
            let Settings { policy, budgets, approval, memory, compaction, .. } = &settings;
            let memory = (
                (memory.recall, memory.limit, memory.least_score),
                (memory.half_life, memory.user_limit, memory.workspace_limit),
            );
            format!(
                "{policy:?} {budgets:?} {asking:?} {approval:?} {grace:?} {memory:?} {compaction:?}"
            )
        };
        assert_eq!(told(defaults()), told(Table::new()));
    }
}
